/** `package.json` and the lock file of the package, made from those of the repository. */

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

interface LockEntry {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly link?: boolean;
  readonly [key: string]: unknown;
}

export interface LockFile {
  readonly packages: Readonly<Record<string, LockEntry>>;
  readonly [key: string]: unknown;
}

/** What only the repository has: commands and packages for development. */
const FOR_DEVELOPMENT: readonly string[] = ["scripts", "devDependencies"];

export function packedManifest(manifest: Manifest): Manifest {
  const kept = Object.entries(manifest).filter(([name]) => !FOR_DEVELOPMENT.includes(name));
  const exports = Object.entries(manifest.exports).map(([name, path]) => [
    name,
    path.replace(/\.ts$/, ".js"),
  ]);
  return { ...Object.fromEntries(kept), exports: Object.fromEntries(exports) } as Manifest;
}

/**
 * The versions that were tested, for those who install the package. `devOptional` is what one of our tools needs and a dependency can
 * do without: TypeScript, which graphile-worker's cosmiconfig would use for a configuration that we don't have.
 */
export function packedLock(lock: LockFile, manifest: Manifest): LockFile {
  const kept = Object.entries(lock.packages).filter(
    ([path, entry]) => path !== "" && entry.dev !== true && entry.devOptional !== true,
  );
  const { name, version, license, bin, engines, dependencies, optionalDependencies } = manifest;
  const own = { name, version, license, bin, engines, dependencies, optionalDependencies } as LockEntry;
  return { ...lock, packages: { "": own, ...Object.fromEntries(kept) } };
}
