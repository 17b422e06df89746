import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandFailed, tell } from "../output.ts";
import { runToEnd, start, stop, type Started } from "./processes.ts";

const PORTAL_ORIGIN = "http://127.0.0.1:4600";
const SERVICE_PORT = "8080";
/** Milliseconds that the portal takes for an answer: as on a real network, and long enough to see the steps. */
const PORTAL_DELAY_MS = "120";

/** The demo's programs: the portal, and the service with a throw-away data folder. */
export interface Surroundings {
  readonly portalUrl: string;
  readonly serviceUrl: string;
  readonly apiKey: string;
  readonly dataFolder: string;
  close(): Promise<void>;
}

export async function openSurroundings(root: string, say: (text: string) => void): Promise<Surroundings> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-demo-"));
  const started: { portal?: Started; service?: Started } = {};
  let closing = false;
  const close = async (): Promise<void> => {
    closing = true;
    if (started.service) await stop(started.service);
    if (started.portal) await stop(started.portal);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    started.portal = await startPortal(root);
    const portalUrl = started.portal.firstLine.replace(/^.* at /, "");
    say(`Northwind Supplier Portal, the system to log into: ${portalUrl}`);
    const main = join(root, "src/main.ts");
    const environment = {
      LATCHKEY_DATA_DIR: join(folder, "data"),
      LATCHKEY_EGRESS_ALLOW: new URL(portalUrl).host,
      LATCHKEY_PORT: SERVICE_PORT,
      LATCHKEY_LOG_LEVEL: "warn",
    };
    say("Making a throw-away data folder with an embedded PostgreSQL …");
    await runToEnd(main, ["init"], environment);
    const serve = async (port: string): Promise<Started> => await start(main, ["serve"], { ...environment, LATCHKEY_PORT: port });
    started.service = await serve(SERVICE_PORT).catch((error: unknown) => {
      if (!String(error).includes("port is taken")) throw error;
      return serve("0");
    });
    const serviceUrl = started.service.firstLine.replace(/^.* at (\S+).*$/, "$1");
    say(`Latchkey: ${serviceUrl} (process ${started.service.child.pid}, data in ${environment.LATCHKEY_DATA_DIR})`);
    const revive = (): void => {
      started.service?.child.once("exit", (code, signal) => {
        if (closing) return;
        tell(`The service ended (${signal ?? code}); the demo starts it again.`);
        void serve(new URL(serviceUrl).port).then((again) => {
          started.service = again;
          revive();
        });
      });
    };
    revive();
    const documents = copyDocuments(root, folder, portalUrl);
    process.stdout.write(await runToEnd(main, ["apply", "-f", documents], environment));
    const { key } = JSON.parse(await runToEnd(main, ["keys", "create", "--account", "acme", "--json"], environment)) as { key: string };
    return { portalUrl, serviceUrl, apiKey: key, dataFolder: environment.LATCHKEY_DATA_DIR, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startPortal(root: string): Promise<Started> {
  const file = join(root, "examples/portal/main.ts");
  const environment = { PORTAL_DELAY_MS, PORTAL_PORT: new URL(PORTAL_ORIGIN).port };
  try {
    return await start(file, [], environment);
  } catch (error) {
    if (!(error instanceof CommandFailed) || !error.message.includes("is taken")) throw error;
    return await start(file, [], { ...environment, PORTAL_PORT: "0" });
  }
}

/** The example documents, with the portal's origin as it is in this demo. */
function copyDocuments(root: string, folder: string, portalUrl: string): string {
  const target = join(folder, "examples");
  cpSync(join(root, "examples"), target, {
    recursive: true,
    filter: (path) => statSync(path).isDirectory() ? !path.endsWith("portal") : /\.ya?ml$/.test(path),
  });
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(PORTAL_ORIGIN, portalUrl));
  }
  return target;
}
