import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackDebian } from "../debian-packages.ts";
import { untilListening } from "./start-proxy.ts";

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
  return await untilListening({ name: "Caddy", child, port, folder });
}
