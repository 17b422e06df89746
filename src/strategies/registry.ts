import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Strategy } from "#domain/strategy.ts";
import type { LoginType } from "./define-login.ts";

/** Types that are planned and not built yet. `apply` refuses them by name. */
export const UNBUILT_LOGIN_TYPES = ["browser"] as const;

// Not `import()`: a module that waits at its top level makes all that import it wait.
const load = createRequire(import.meta.url);

/** Every login type of a folder, one file each, which exports `login`. Throws when a file's name isn't the type that it defines. */
export function loadLoginTypes(folder: string): ReadonlyMap<string, LoginType> {
  const types = new Map<string, LoginType>();
  const files = readdirSync(folder).filter((file) => file.endsWith(".ts"));
  for (const file of files.sort()) {
    const loaded = load(join(folder, file)) as { readonly login?: LoginType };
    if (loaded.login === undefined) continue;
    const { type } = loaded.login;
    if (type !== basename(file, ".ts"))
      throw new Error(`The login type "${type}" must be in a file named ${type}.ts, not in ${file}.`);
    types.set(type, loaded.login);
  }
  return types;
}

/** Every login type that a strategy may use, by name. Adding one is adding a file to `types/`. */
export const loginTypes: ReadonlyMap<string, LoginType> = loadLoginTypes(
  fileURLToPath(new URL("types/", import.meta.url)),
);

/**
 * Every origin that may receive something of a credential of this strategy: its hosts, and what its login sends to besides. What
 * the hosted form shows, and what is sealed into the credential when it is submitted.
 */
export function credentialOrigins({ hosts, login }: Strategy): readonly string[] {
  const { type, ...config } = login;
  return [...new Set([...hosts, ...(loginTypes.get(type)?.sendsTo?.(config) ?? [])])];
}
