/** The TypeScript SDK's packed artefact, bundled as a customer would, in a real Chromium: `webhooks.verify` with Web Crypto. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { build, type Rolldown } from "vite";
import { newWebhookSecret, openWebhookSigner, webhookHeaders } from "#lib/webhook-signature.ts";
import { launchChromium } from "../hosted/chromium.ts";
import { installPacked, packSdk } from "./pack.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-browser-"));
after(() => rmSync(folder, { recursive: true }));

/** The files of a customer's page, by their names. */
async function bundle(customer: string): Promise<ReadonlyMap<string, string>> {
  writeFileSync(
    join(customer, "page.js"),
    `import { Latchkey, webhooks } from "@latchkey/sdk";\nObject.assign(globalThis, { Latchkey, webhooks });\n`,
  );
  const [output] = (await build({
    configFile: false,
    root: customer,
    logLevel: "error",
    build: { write: false, lib: { entry: join(customer, "page.js"), formats: ["es"] } },
  })) as Rolldown.RolldownOutput[];
  return new Map(
    output?.output.flatMap((each) =>
      each.type === "chunk" ? [[each.isEntry ? "/page.js" : `/${each.fileName}`, each.code] as const] : [],
    ),
  );
}

test("a browser verifies a genuine webhook, refuses others, and reads the API as the SDK does elsewhere", async () => {
  const customer = join(folder, "customer");
  await installPacked(await packSdk("typescript", folder), customer);
  const files = await bundle(customer);
  const server = createServer(({ url = "" }, response) => {
    const file = files.get(url);
    if (file !== undefined) return void response.setHeader("Content-Type", "text/javascript").end(file);
    if (url.startsWith("/api/v1/blueprint-runs/"))
      return void response
        .setHeader("Content-Type", "application/json")
        .end('{"id":"run_x","status":"completed"}');
    response.setHeader("Content-Type", "text/html").end('<script type="module" src="/page.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const chromium = await launchChromium();
  try {
    const page = await chromium.newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(origin);
    await page.waitForFunction("globalThis.webhooks !== undefined");
    const [secret, body] = [newWebhookSecret(), '{"type":"run.completed","data":{"id":"run_ü"}}'];
    const signed = (atMs: number): object =>
      Object.fromEntries(webhookHeaders({ id: "msg_1", atMs, body }, [openWebhookSigner(secret)]));
    const headers = signed(Date.now());
    const verify = async (...given: unknown[]): Promise<unknown> =>
      await page.evaluate(
        `webhooks.verify(...${JSON.stringify(given)}).then((event) => event.data.id, (error) => error.name)`,
      );
    assert.equal(await verify(body, headers, secret), "run_ü");
    assert.equal(await verify(`${body} `, headers, secret), "WebhookVerificationError");
    assert.equal(await verify(body, headers, newWebhookSecret()), "WebhookVerificationError");
    const old = signed(Date.now() - 600_000);
    assert.equal(await verify(body, old, secret), "WebhookVerificationError");
    const read = `new Latchkey({ apiKey: "lk_x", baseUrl: location.origin }).runs.readStatus("run_x").then(({ status }) => status)`;
    assert.equal(await page.evaluate(read), "completed");
    assert.deepEqual(complaints, []);
  } finally {
    await chromium.close();
    server.close();
  }
});
