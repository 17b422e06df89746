import { join } from "node:path";
import { findPostmaster, type Postmaster } from "#db/embedded/postmaster-file.ts";

/** The embedded server that runs in this data folder; undefined: none does. */
export function runningPostmaster(dataDir: string): Postmaster | undefined {
  const found = findPostmaster(join(dataDir, "postgres"));
  return found.kind === "running" ? found.postmaster : undefined;
}

/** The same. Throws when none runs. */
export function postmasterOf(dataDir: string): Postmaster {
  const postmaster = runningPostmaster(dataDir);
  if (postmaster === undefined) throw new Error(`no server runs in ${dataDir}`);
  return postmaster;
}
