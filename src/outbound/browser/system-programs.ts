import { accessSync, constants } from "node:fs";
import { join } from "node:path";

const FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/** What a program of the system needs of an environment: nothing of ours. */
export const ENVIRONMENT = { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" } as const;

/** Null: it is not installed. Wherever PATH of the worker leads, nothing else is started. */
export function programPath(name: string): string | null {
  return FOLDERS.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
