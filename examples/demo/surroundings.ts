import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CommandFailed, tell } from "#cli/output.ts";
import { runToEnd, start, stop, type Environment, type Started } from "./processes.ts";
import { readTarget } from "./target.ts";

const ROOT = join(import.meta.dirname, "../..");
const PORTAL_ORIGIN = "http://127.0.0.1:4600";
const LEDGER_ORIGIN = "http://127.0.0.1:4601";
const APP_ORIGIN = "http://127.0.0.1:3000";
const SERVICE_PORT = "8080";

/** What the demonstrated example needs. */
export interface Needs {
  /** Documents below `examples/`; only these are applied. */
  readonly documents: readonly string[];
  /** How long the portal takes for an answer: as on a real network, and long enough to see the steps. */
  readonly portalDelayMs: number;
  /** The secrets of the account that documents name, all for the portal. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** The demo's programs: the portal, and the service with a throw-away data folder. */
export interface Surroundings {
  readonly portalUrl: string;
  readonly serviceUrl: string;
  readonly apiKey: string;
  /** The operator of the dashboard. Only for the demo: it is deleted with the temporary folder. */
  readonly operator: { readonly email: string; readonly password: string };
  /** Files of the examples. */
  readonly examples: string;
  /** Throw-away, for the demo's own files. */
  readonly folder: string;
  /** Runs a command as the operator, and returns its output. */
  latchkey(...arguments_: readonly string[]): Promise<string>;
  /** Starts Ledgerly, a customer's application, and returns its URL. */
  startCustomerApp(): Promise<string>;
  /** Aborted when the demo is told to stop. */
  readonly stopped: AbortSignal;
  close(): Promise<void>;
}

/**
 * Starts everything. `foreign` is the environment without our settings, which are for a real service. If `stopped` aborts, or a
 * step fails, stops what it has started and throws.
 */
export async function openSurroundings(
  foreign: Environment,
  needs: Needs,
  say: (text: string) => void,
  stopped: AbortSignal,
): Promise<Surroundings> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-demo-"));
  const programs: Program[] = [];
  const close = async (): Promise<void> => {
    // In reverse order: the service before the portal that it logs in to.
    for (const program of programs.toReversed()) await program.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const main = join(ROOT, "src/main.mjs");
    const dataFolder = join(folder, "data");
    const surroundings = {
      ...foreign,
      LATCHKEY_DATA_DIR: dataFolder,
      LATCHKEY_LOG_LEVEL: "warn",
    };
    say("Creating a temporary data folder with an embedded PostgreSQL …");
    const [portal] = await together([
      startPortal(foreign, needs.portalDelayMs, programs),
      runToEnd(main, ["init"], surroundings),
    ]);
    stopped.throwIfAborted();
    const portalUrl = portal.firstLine.replace(/^.* at /, "");
    say(`Northwind Supplier Portal, the system to log into: ${portalUrl}`);
    const { ledger } = (await readTarget(portalUrl)).addresses;
    const allowed = [portalUrl, ledger].map((url) => new URL(url).host).join();
    const environment = { ...surroundings, LATCHKEY_EGRESS_ALLOW: allowed };
    const latchkey = async (...arguments_: readonly string[]): Promise<string> =>
      await runToEnd(main, arguments_, environment);
    const service = await startService(main, environment, programs);
    stopped.throwIfAborted();
    const serviceUrl = service.firstLine.replace(/^.* at (\S+).*$/, "$1");
    say(`Latchkey: ${serviceUrl} (process ${service.child.pid}, data in ${dataFolder})`);
    const origins = [
      [PORTAL_ORIGIN, portalUrl],
      [LEDGER_ORIGIN, ledger],
    ] as const;
    const examples = join(ROOT, "examples");
    const documents = copyDocuments(examples, needs.documents, join(folder, "examples"), origins);
    process.stdout.write(await latchkey("apply", "-f", documents));
    stopped.throwIfAborted();
    await setSecrets(latchkey, needs.secrets, portalUrl, folder);
    const { key, operator } = await makeAccess(latchkey, stopped);
    return {
      portalUrl,
      serviceUrl,
      apiKey: key,
      operator,
      examples,
      folder,
      latchkey,
      startCustomerApp: () => startCustomerApp({ foreign, serviceUrl, key, documents, latchkey }, programs),
      stopped,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Secrets of the account that may only be sent to the portal. */
async function setSecrets(
  latchkey: Surroundings["latchkey"],
  secrets: Needs["secrets"],
  portalUrl: string,
  folder: string,
): Promise<void> {
  for (const [name, value] of Object.entries(secrets)) {
    const file = join(folder, name);
    writeFileSync(file, value, { mode: 0o600 });
    await latchkey("secrets", "set", "--account", "acme", name, "--for", portalUrl, "--file", file);
    rmSync(file);
  }
}

/** For the customer's backend, and for you when you look at the dashboard. */
async function makeAccess(
  latchkey: Surroundings["latchkey"],
  stopped: AbortSignal,
): Promise<{ readonly key: string; readonly operator: Surroundings["operator"] }> {
  const made = await latchkey("keys", "create", "--account", "acme", "--json");
  stopped.throwIfAborted();
  // Not the first one that `init` makes: an admin has to set up an authenticator app before anything else.
  const operator = await latchkey("operators", "create", "demo@localhost", "--role", "operator", "--json");
  stopped.throwIfAborted();
  return {
    key: (JSON.parse(made) as { key: string }).key,
    operator: JSON.parse(operator) as Surroundings["operator"],
  };
}

/** Waits for all of them, and then throws the first failure, so that nothing is still being started when the clean-up begins. */
async function together<T extends readonly unknown[]>(work: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  await Promise.allSettled(work);
  return (await Promise.all(work)) as unknown as T;
}

interface Program {
  stop(): Promise<void>;
}

async function startPortal(foreign: Environment, delayMs: number, programs: Program[]): Promise<Started> {
  const file = fileURLToPath(import.meta.resolve("#examples/portal/main.ts"));
  const portal = await onPortOrAnother(
    async (port) =>
      await start(file, [], { ...foreign, PORTAL_DELAY_MS: String(delayMs), PORTAL_PORT: port }),
    new URL(PORTAL_ORIGIN).port,
  );
  programs.push({ stop: async () => await stop(portal) });
  return portal;
}

interface AppNeeds {
  readonly foreign: Environment;
  readonly serviceUrl: string;
  readonly key: string;
  /** The folder of the applied documents. */
  readonly documents: string;
  latchkey(...arguments_: readonly string[]): Promise<string>;
}

async function startCustomerApp(needs: AppNeeds, programs: Program[]): Promise<string> {
  const file = fileURLToPath(import.meta.resolve("#examples/customer-app/main.ts"));
  const settings = { LEDGERLY_LATCHKEY_URL: needs.serviceUrl, LEDGERLY_API_KEY: needs.key };
  const app = await onPortOrAnother(
    async (port) => await start(file, [], { ...needs.foreign, ...settings, LEDGERLY_PORT: port }),
    new URL(APP_ORIGIN).port,
  );
  programs.push({ stop: async () => await stop(app) });
  const url = app.firstLine.replace(/^.* at /, "");
  if (url === APP_ORIGIN) return url;
  // Its users are redirected back to it, so the account must allow its origin.
  const account = join(needs.documents, "account.yaml");
  writeFileSync(account, readFileSync(account, "utf8").replaceAll(APP_ORIGIN, url));
  await needs.latchkey("apply", "-f", needs.documents);
  return url;
}

/** The service. If it ends unexpectedly (for example because you try kill -9), it is restarted with the same port and data. */
async function startService(main: string, environment: Environment, programs: Program[]): Promise<Started> {
  const serve = async (port: string): Promise<Started> =>
    await start(main, ["serve"], { ...environment, LATCHKEY_PORT: port });
  const first = await onPortOrAnother(serve, SERVICE_PORT);
  let closing = false;
  let current = Promise.resolve(first);
  const watch = ({ child, firstLine }: Started): void => {
    child.once("exit", (code, signal) => {
      if (closing) return;
      tell(`The service ended (${signal ?? code}); the demo starts it again.`);
      current = serve(/:(\d+)/.exec(firstLine.replace(/^.*:\/\//, ""))?.[1] ?? SERVICE_PORT);
      current.then(watch, (error: unknown) => tell(`It can't be started again: ${(error as Error).message}`));
    });
  };
  watch(first);
  programs.push({
    stop: async () => {
      closing = true;
      const running = await current.catch(() => null);
      if (running) await stop(running);
    },
  });
  return first;
}

async function onPortOrAnother(begin: (port: string) => Promise<Started>, port: string): Promise<Started> {
  try {
    return await begin(port);
  } catch (error) {
    if (!(error instanceof CommandFailed) || !error.message.includes("is taken")) throw error;
    return await begin("0");
  }
}

/** The example documents, with the portal's and the ledger's origins of this demo. */
function copyDocuments(
  examples: string,
  documents: readonly string[],
  target: string,
  origins: readonly (readonly [written: string, real: string])[],
): string {
  for (const name of documents) {
    const text = origins.reduce(
      (rest, [written, real]) => rest.replaceAll(written, real),
      readFileSync(join(examples, name), "utf8"),
    );
    const path = join(target, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return target;
}
