import { join } from "node:path";
import { openLocalStore } from "#blobs/local-store.ts";
import { openS3Store } from "#blobs/s3-store.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Config } from "./settings/settings.ts";

/** Opens the object store that the settings name. Connects only when it is first used. */
export function openStore({ objectStore, dataDir }: Config): BlobStore {
  return objectStore === null ? openLocalStore(join(dataDir, "objects")) : openS3Store(objectStore);
}
