import type { Connection } from "./connection.ts";
import { sleep } from "./connection.ts";
import { ApiError, ConnectionError, LatchkeyError } from "./errors.ts";
import { chunksOf } from "./server-events.ts";

/** How often in a row a download may break without a byte of progress. */
const FAILURES_MAX = 5;
const PAUSE_MS = 500;

/**
 * The bytes of a download. One that is cut goes on where it stopped, with a new link if the old one has expired.
 * `link` returns the current link.
 */
export async function* download(
  connection: Connection,
  link: () => Promise<string>,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let [url, received, failures] = [await link(), 0, 0];
  for (;;) {
    let total: number | undefined;
    try {
      const response = await connection.download(
        url,
        received > 0 ? { Range: `bytes=${received}-` } : {},
        signal,
      );
      let skip = received > 0 && response.status !== 206 ? received : 0;
      total = totalBytes(response);
      for await (const bytes of chunksOf(response.body ?? new ReadableStream())) {
        const news = bytes.subarray(Math.min(skip, bytes.length));
        skip -= bytes.length - news.length;
        if (news.length === 0) continue;
        received += news.length;
        failures = 0;
        yield news;
      }
      if (total === undefined || received >= total) return;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ApiError && error.status === 403) url = await link();
      else if (!mayPass(error)) throw error;
      if (failures >= FAILURES_MAX)
        throw new ConnectionError("The download was interrupted", { cause: error });
    }
    failures += 1;
    await sleep(Math.random() * PAUSE_MS * 2 ** failures, signal);
  }
}

const mayPass = (error: unknown): boolean =>
  error instanceof ApiError
    ? error.status === 429 || error.status >= 500
    : !(error instanceof LatchkeyError) || error instanceof ConnectionError;

/** The size of the whole download, not of the part that is sent. */
function totalBytes({ status, headers }: Response): number | undefined {
  const size =
    status === 206 ? /\/(\d+)$/.exec(headers.get("content-range") ?? "")?.[1] : headers.get("content-length");
  return size === undefined || size === null ? undefined : Number(size);
}
