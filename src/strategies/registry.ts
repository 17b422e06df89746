import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { LoginType } from "./define-login.ts";

/** Types of design page 3 that aren't built yet. `apply` refuses them by name. */
export const UNBUILT_LOGIN_TYPES = ["browser"] as const;

/** Every login type in a folder: the files that export `login`. Throws when a file's name isn't the type that it defines. */
export async function loadLoginTypes(folder: string): Promise<ReadonlyMap<string, LoginType>> {
  const types = new Map<string, LoginType>();
  // The main program of a thread has no business in this one.
  const files = readdirSync(folder).filter(
    (file) => file.endsWith(".ts") && file !== "registry.ts" && !file.endsWith("-thread.ts"),
  );
  for (const file of files.sort()) {
    const loaded = (await import(pathToFileURL(join(folder, file)).href)) as { readonly login?: LoginType };
    if (loaded.login === undefined) continue;
    const { type } = loaded.login;
    if (type !== basename(file, ".ts"))
      throw new Error(`The login type "${type}" must be in a file named ${type}.ts, not in ${file}.`);
    types.set(type, loaded.login);
  }
  return types;
}

/** Every login type that a strategy may use, by name. Adding one is adding a file to this folder. */
export const loginTypes: ReadonlyMap<string, LoginType> = await loadLoginTypes(
  fileURLToPath(new URL(".", import.meta.url)),
);
