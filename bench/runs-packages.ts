/**
 * What Latchkey's runs are compared with, besides graphile-worker, which it uses itself. None of it is a dependency of the
 * project: the bench installs exact versions into node_modules/.cache and loads them by path.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { installPackages } from "../test/npm-packages.ts";

const installed = (): string =>
  installPackages({
    name: "bench-runs",
    packages: { "pg-boss": "12.38.0", "@dbos-inc/dbos-sdk": "5.3.0" },
    // pg-boss asks for a version that some registries do not have; its results do not depend on it.
    overrides: { "rrule-temporal": "2.2.7" },
    instead:
      "The bench needs the registry once; without it, run `npm run bench -- runs --without pg-boss,dbos`.",
  });

/** Installs them unless these versions are there already. Throws PackagesMissing. */
export function installPeers(): void {
  installed();
}

/** One of them. As much of its types as is used is the caller's affair. */
export function loadPeer<Package>(name: "pg-boss" | "@dbos-inc/dbos-sdk"): Package {
  return createRequire(join(installed(), "package.json"))(name) as Package;
}
