import { opendir } from "node:fs/promises";
import { join } from "node:path";

/** Names of one folder that are in memory at a time: some 40 MB. A larger folder is read again for the next ones. */
const NAMES_MAX = 50_000;

/**
 * The files below `prefix` (`results/acct_1/`; empty: all) of a folder whose path from it comes after `after`, in the order of these
 * paths' bytes. Folders that end at `after` or before it are not read, and no folder is ever in memory as a whole.
 */
export async function* walkInOrder(
  folder: string,
  prefix: string,
  after = "",
  namesMax = NAMES_MAX,
): AsyncIterable<string> {
  const isWanted = (name: string): boolean => {
    const path = prefix + name;
    return path > after || (name.endsWith("/") && after.startsWith(path));
  };
  for (let passed = "", isWhole = false; !isWhole;) {
    const names = await readFirst(join(folder, prefix), namesMax, (name) => name > passed && isWanted(name));
    for (const name of names) {
      if (name.endsWith("/")) yield* walkInOrder(folder, prefix + name, after, namesMax);
      else yield prefix + name;
    }
    isWhole = names.length < namesMax;
    passed = names.at(-1) ?? "";
  }
}

/** The first matching names of a folder, in order. The name of a subfolder ends in `/`, as in the paths of its files. */
async function readFirst(
  path: string,
  most: number,
  isWanted: (name: string) => boolean,
): Promise<readonly string[]> {
  let names: string[] = [];
  let last: string | undefined;
  const keepFirst = (): void => {
    names = names.toSorted(byBytes).slice(0, most);
    last = names.length === most ? names.at(-1) : undefined;
  };
  try {
    for await (const entry of await opendir(path, { bufferSize: 1_024 })) {
      if (!entry.isDirectory() && !entry.isFile()) continue;
      const name = entry.isDirectory() ? `${entry.name}/` : entry.name;
      if ((last !== undefined && name > last) || !isWanted(name)) continue;
      names.push(name);
      if (names.length >= 2 * most) keepFirst();
    }
  } catch (error) {
    // Nothing was ever stored there, or another process has just removed it.
    if ((error as { code?: string }).code !== "ENOENT") throw error;
  }
  keepFirst();
  return names;
}

/** For ASCII names only, as the service's are. */
const byBytes = (one: string, other: string): number => (one < other ? -1 : Number(one > other));
