import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { placesIn, unpackDebian, whyNoDebian } from "../debian-packages.ts";
import { freePort } from "../free-port.ts";
import { untilListening } from "./start-proxy.ts";

/** Why there is no nginx here; null: there is one. */
export const whyNoNginx = whyNoDebian;

/** One `server` of nginx: what it passes requests on to, from which address, and with which directives besides. */
interface Hop {
  readonly to: string;
  readonly from: string;
  readonly directives: string;
}

export interface Nginx extends AsyncDisposable {
  /** Where each hop listens, in the order that they were given. */
  readonly urls: readonly string[];
}

/**
 * The nginx of Debian, one process, each hop a server of its own. Fetched once with apt; its own C library comes along. A hop's `to` may
 * be `hop:N`: the server with that index.
 */
export async function startNginx(hops: readonly Hop[]): Promise<Nginx> {
  const urls: string[] = [];
  for (let index = 0; index < hops.length; index++) urls.push(`http://127.0.0.1:${await freePort()}`);
  const running = await runNginx(serversOf(hops, urls), Number(new URL(urls[0] ?? "").port));
  return { urls, ...running };
}

/** The same with servers as they are written; one of them listens at `port` of 127.0.0.1. */
export async function runNginx(servers: string, port: number): Promise<AsyncDisposable> {
  const root = await unpackDebian({
    name: "nginx",
    what: "nginx, the reverse proxy of the tests,",
    from: [{ suite: "trixie", packages: ["nginx"], withDependencies: true }],
    instead: "Is a Debian mirror reachable?",
  });
  const folder = mkdtempSync(join(tmpdir(), "latchkey-nginx-"));
  mkdirSync(join(folder, "temp"));
  const config = join(folder, "nginx.conf");
  writeFileSync(config, configOf(servers));
  const { loader, libraries } = placesIn(root);
  const child = spawn(
    loader,
    [
      "--library-path",
      libraries,
      join(root, "usr/sbin/nginx"),
      "-p",
      folder,
      "-c",
      config,
      "-e",
      "error.log",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  return await untilListening({ name: "nginx", child, port, folder, readLog: () => readLog(folder) });
}

function readLog(folder: string): string {
  try {
    return readFileSync(join(folder, "error.log"), "utf8");
  } catch {
    return "";
  }
}

function serversOf(hops: readonly Hop[], urls: readonly string[]): string {
  const servers = hops.map(({ to, from, directives }, index) => {
    const target = to.startsWith("hop:") ? (urls[Number(to.slice("hop:".length))] ?? "") : to;
    const port = new URL(urls[index] ?? "").port;
    return `  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${target};
      proxy_bind ${from};
      ${directives}
    }
  }`;
  });
  return servers.join("\n");
}

function configOf(servers: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `  ${name}_temp_path temp/${name};`)
    .join("\n");
  return `daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {}
http {
  access_log off;
${temporary}
${servers}
}
`;
}
