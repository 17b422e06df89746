/**
 * What Latchkey's runs are compared with, besides graphile-worker, which it uses itself. None of it is a dependency of the
 * project: the bench installs exact versions into node_modules/.cache and loads them by path.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const folder = resolve(import.meta.dirname, "../node_modules/.cache/bench-runs");

const MANIFEST = `${JSON.stringify(
  {
    private: true,
    dependencies: { "pg-boss": "12.38.0", "@dbos-inc/dbos-sdk": "5.3.0" },
    // pg-boss asks for a version that some registries do not have; its results do not depend on it.
    overrides: { "rrule-temporal": "2.2.7" },
  },
  null,
  2,
)}\n`;

/** They could not be installed. */
export class PeersMissing extends Error {
  override readonly name = "PeersMissing";
}

/** Installs them unless these versions are there already. */
export function installPeers(say: (text: string) => void): void {
  const manifest = join(folder, "package.json");
  const done = join(folder, "installed.json");
  if (existsSync(done) && readFileSync(done, "utf8") === MANIFEST) return;
  say(`installing pg-boss and DBOS into ${folder}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(manifest, MANIFEST);
  try {
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
  } catch (error) {
    throw new PeersMissing(
      `npm could not install what the runs are compared with (${manifest}). The bench needs the registry once; ` +
        "without it, run `npm run bench -- runs --without pg-boss,dbos`.",
      { cause: error },
    );
  }
  // Last: a half-made folder is made again.
  writeFileSync(done, MANIFEST);
}

/** One of them. As much of its types as is used is the caller's affair. */
export function loadPeer<Package>(name: "pg-boss" | "@dbos-inc/dbos-sdk"): Package {
  return createRequire(join(folder, "package.json"))(name) as Package;
}
