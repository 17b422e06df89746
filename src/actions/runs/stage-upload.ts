import type { StoredBlob } from "#blobs/store.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Needs } from "#actions/services.ts";

/**
 * Streams an uploaded file into the object store under a generated key (a file name is a label only). `onKey` gets the key
 * before the first byte is written, so that the caller can remove the object whatever happens.
 */
export async function stageUpload(
  services: Needs<"blobs">,
  accountId: string,
  bytes: AsyncIterable<Uint8Array>,
  onKey: (key: string) => void,
): Promise<StoredBlob> {
  const key = `inputs/${accountId}/${randomBase62(24)}`;
  onKey(key);
  return await services.blobs.put(key, bytes);
}
