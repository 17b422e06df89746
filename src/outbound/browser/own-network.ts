import { execFile, spawn } from "node:child_process";
import { Server } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BrowserError } from "./browser-error.ts";
import { ENVIRONMENT, programPath } from "./system-programs.ts";

const run = promisify(execFile);

const LISTEN = fileURLToPath(new URL("./listen.mjs", import.meta.url));
const PROBE_MS = 10_000;
const LISTEN_MS = 30_000;
const NAME = "LATCHKEY_BROWSER_NETWORK=own";

let checking: Promise<string | null> | null = null;

/** Throws BrowserError, with the remedy, where a browser can have no network of its own. */
export async function requireOwnNetwork(): Promise<void> {
  checking ??= whyNot();
  const why = await checking;
  if (why !== null) throw new BrowserError("browser_missing", why);
}

async function whyNot(): Promise<string | null> {
  if (process.getuid?.() !== 0)
    return `${NAME} needs a worker that runs as root. Run it as root, or unset the setting.`;
  const [unshare, ip] = [programPath("unshare"), programPath("ip")];
  if (unshare === null || ip === null || programPath("nsenter") === null)
    return `${NAME} needs unshare, nsenter and ip. Install util-linux and iproute2, or unset the setting.`;
  return await run(unshare, ["--net", "--", ip, "link", "set", "lo", "up"], { timeout: PROBE_MS }).then(
    () => null,
    () =>
      `${NAME} needs network namespaces, which this machine or container does not allow. Allow them (for containers: the capabilities ` +
      "SYS_ADMIN and NET_ADMIN), or unset the setting.",
  );
}

/**
 * A listener on loopback of the network in which this process is, for the gate's proxy: the only thing there that a page can
 * connect to. A socket stays in the network in which it was made, whichever process holds it, so nothing has to pass on what it receives: a
 * process enters the network, turns its loopback on, makes the socket, hands it over and ends.
 */
export async function listenInNetworkOf(pid: number): Promise<Server> {
  const [nsenter, ip] = [programPath("nsenter") ?? "nsenter", programPath("ip") ?? "ip"];
  const script = 'ip=$1; shift; "$ip" link set lo up && exec "$@"';
  const inside = ["/bin/sh", "-c", script, "sh", ip, process.execPath, LISTEN];
  const child = spawn(nsenter, [`--net=/proc/${pid}/ns/net`, "--", ...inside], {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: ENVIRONMENT,
    timeout: LISTEN_MS,
    killSignal: "SIGKILL",
  });
  return await new Promise((resolve, reject) => {
    const fail = (): void =>
      reject(
        new BrowserError("browser_missing", `${NAME}: no proxy could be opened in the browser's network.`),
      );
    child.once("error", fail);
    child.once("exit", fail);
    child.once("message", (_message, listener) => {
      if (listener instanceof Server) resolve(listener);
      else fail();
      child.disconnect();
    });
  });
}
