import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Packages of npm that tests and benches compare with or connect, in exact versions; none is a dependency of the project. */
export interface WantedFromNpm {
  /** The folder below `node_modules/.cache`. */
  readonly name: string;
  readonly packages: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
  /** What to do where they can't be installed. */
  readonly instead: string;
}

/** They could not be installed. */
export class PackagesMissing extends Error {
  override readonly name = "PackagesMissing";
}

/** Installs them unless these versions are there already, without running their scripts. Returns the folder. */
export function installPackages({ name, packages, overrides, instead }: WantedFromNpm): string {
  const folder = resolve(import.meta.dirname, "../node_modules/.cache", name);
  const manifest = `${JSON.stringify({ private: true, dependencies: packages, overrides }, null, 2)}\n`;
  const done = join(folder, "installed.json");
  if (existsSync(done) && readFileSync(done, "utf8") === manifest) return folder;
  console.error(`installing ${Object.keys(packages).join(", ")} into ${folder}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), manifest);
  try {
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
  } catch (error) {
    throw new PackagesMissing(`npm could not install ${join(folder, "package.json")}. ${instead}`, {
      cause: error,
    });
  }
  // Last: a half-made folder is made again.
  writeFileSync(done, manifest);
  return folder;
}
