import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Strategy } from "#domain/strategy.ts";
import type { LoginType } from "./define-login.ts";

// Not `import()`: a top-level await would delay every module that imports this one.
const load = createRequire(import.meta.url);
/** Like this file: TypeScript, or JavaScript in an installed package. */
const EXTENSION = extname(import.meta.url);

/** Loads all login types of a folder. Each file exports `login` and is named after the type that it defines; otherwise this throws. */
export function loadLoginTypes(folder: string): ReadonlyMap<string, LoginType> {
  const types = new Map<string, LoginType>();
  const files = readdirSync(folder).filter((file) => file.endsWith(EXTENSION));
  for (const file of files.sort()) {
    const loaded = load(join(folder, file)) as { readonly login?: LoginType };
    if (loaded.login === undefined) continue;
    const { type } = loaded.login;
    if (type !== basename(file, EXTENSION))
      throw new Error(
        `The login type "${type}" must be in a file named ${type}${EXTENSION}, not in ${file}.`,
      );
    types.set(type, loaded.login);
  }
  return types;
}

/** Every login type that a strategy may use, by name. To add one, add a file to `types/`. */
export const loginTypes: ReadonlyMap<string, LoginType> = loadLoginTypes(
  fileURLToPath(new URL("types/", import.meta.url)),
);

/**
 * Every origin that may receive a part of a credential of this strategy: its hosts, and other origins that its login uses. They
 * are shown in the hosted form, and sealed into the credential when it is submitted.
 */
export function credentialOrigins({ hosts, login }: Strategy): readonly string[] {
  const { type, ...config } = login;
  return [...new Set([...hosts, ...(loginTypes.get(type)?.sendsTo?.(config) ?? [])])];
}
