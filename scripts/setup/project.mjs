/** Where things are, and how set-up speaks. Nothing here may import more than node:fs: it is on the fast path. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
export const modules = join(root, "node_modules");
export const lockfile = join(root, "package-lock.json");

/** A condition that a person has to fix: its message names the problem and the remedy, no stack is shown. */
export class Refusal extends Error {}

export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** The file's text, or undefined when there is none. */
export function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw new Refusal(`Cannot read ${path} (${error.code}). Give this user read access to ${root}.`);
  }
}
