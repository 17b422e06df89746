import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const TSC = realpathSync(join(ROOT, "node_modules/.bin/tsc"));
const run = promisify(execFile);

/** Compiles and packs a package of `sdk/`, as a release does; gives the tarball, which is in `folder`. */
export async function packSdk(name: "typescript" | "mcp", folder: string): Promise<string> {
  const source = join(folder, name);
  cpSync(join(ROOT, "sdk", name), source, { recursive: true });
  // Node's types come from this repository, as they would from the package's own installation.
  for (const types of ["@types/node", "undici-types"])
    cpSync(join(ROOT, "node_modules", types), join(source, "node_modules", types), { recursive: true });
  await run(process.execPath, [TSC, "-p", source]);
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: source });
  return join(folder, `latchkey-${name === "typescript" ? "sdk" : name}-0.1.0.tgz`);
}

/** A customer's folder with the package in it, installed without a network. */
export async function installPacked(tarball: string, customer: string): Promise<void> {
  mkdirSync(customer);
  writeFileSync(join(customer, "package.json"), '{ "type": "module" }');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: customer });
}

/** Every `node` of this machine: the project's, and those that it has. */
export function listNodes(): readonly string[] {
  const places = (process.env["PATH"] ?? "").split(":").map((place) => join(place, "node"));
  const found = [process.execPath, ...places].filter((place) => existsSync(place));
  return [...new Set(found.map((place) => realpathSync(place)))];
}
