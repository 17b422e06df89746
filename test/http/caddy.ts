import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { unpackDebian } from "../debian-packages.ts";
import { isListening } from "./nginx.ts";

const START_TRIES_MAX = 1_000;

/** The Caddy of Debian with these sites; one of them listens at `port`. Fetched once with apt. */
export async function runCaddy(sites: string, port: number): Promise<AsyncDisposable> {
  const root = await unpackDebian({
    name: "caddy",
    what: "Caddy, the other reverse proxy of the tests,",
    // One file without libraries: it runs on any machine.
    from: [{ suite: "trixie", packages: ["caddy"], withDependencies: false }],
    instead: "Is a Debian mirror reachable?",
  });
  const folder = mkdtempSync(join(tmpdir(), "latchkey-caddy-"));
  const config = join(folder, "Caddyfile");
  writeFileSync(config, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${sites}`);
  const child = spawn(join(root, "usr/bin/caddy"), ["run", "--config", config, "--adapter", "caddyfile"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { HOME: folder, PATH: process.env["PATH"] ?? "", GOMAXPROCS: "1" },
  });
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString("utf8")));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const end = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (let tries = 0; !(await isListening(port)); tries++) {
    if (tries > START_TRIES_MAX || child.exitCode !== null) {
      await end();
      throw new Error(`Caddy does not answer:\n${complaints}`);
    }
    await sleep(20);
  }
  return { [Symbol.asyncDispose]: end };
}
