import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { startApp } from "../../examples/customer-app/app.ts";
import { install, type RunningService } from "../service.ts";
import { openPortal } from "./portal-visitor.ts";

const document = (name: string): string =>
  readFileSync(new URL(`../../examples/${name}`, import.meta.url), "utf8");

const DOCUMENTS = [
  "strategies/northwind-portal.yaml",
  "blueprints/supplier-invoices.yaml",
  "blueprints/invoice-table.yaml",
];

export interface Ledgerly extends AsyncDisposable {
  readonly app: Awaited<ReturnType<typeof startApp>>;
  readonly service: RunningService;
  readonly apiKey: string;
}

/** The customer's application of the examples, its portal, and an installation that has their documents and allows its origin. */
export async function openLedgerly(t: TestContext): Promise<Ledgerly> {
  await using opened = new AsyncDisposableStack();
  const portal = await openPortal(t);
  const installation = opened.use(await install());
  const account = document("account.yaml");
  const own = DOCUMENTS.map((name) => document(name).replaceAll("http://127.0.0.1:4600", portal.url));
  await installation.apply(account, ...own);
  const [apiKey, service] = await Promise.all([installation.createKey("acme"), installation.serve()]);
  const app = await startApp({ port: 0, latchkeyUrl: service.url, apiKey });
  opened.defer(async () => await app.close());
  await installation.apply(account.replaceAll("http://127.0.0.1:3000", app.url));
  const kept = opened.move();
  return { app, service, apiKey, [Symbol.asyncDispose]: async () => await kept.disposeAsync() };
}
