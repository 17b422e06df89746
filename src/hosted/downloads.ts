import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { openDownload, type Download } from "#actions/runs/open-download.ts";
import { downloadHeaders } from "#domain/download.ts";
import type { Handler } from "./send-page.ts";

/**
 * A presigned download: the Brotli stream of a result key. No `Content-Encoding`, so that no client decompresses it twice
 * (docs/api.md#results). Range requests work.
 */
export const sendDownload: Handler = async (services, request, reply) => {
  const { accountId, runId, key } = request.params as { accountId: string; runId: string; key: string };
  const { expires, signature } = request.query as { expires?: unknown; signature?: unknown };
  const download = await openDownload(services, {
    accountId,
    runId,
    key,
    expires: typeof expires === "string" ? expires : "",
    signature: typeof signature === "string" ? signature : "",
  });
  return await sendRange(reply, download, request.headers.range);
};

function setHeaders(reply: FastifyReply, key: string): void {
  const { cacheControl, contentType, contentDisposition } = downloadHeaders(key);
  reply.headers({
    "Cache-Control": cacheControl,
    "X-Content-Type-Options": "nosniff",
    "Content-Type": contentType,
    "Content-Disposition": contentDisposition,
    "Accept-Ranges": "bytes",
  });
}

async function sendRange(
  reply: FastifyReply,
  download: Download,
  header: string | undefined,
): Promise<FastifyReply> {
  const range = readRange(header, download.sizeBytes);
  if (range === "unsatisfiable") {
    setHeaders(reply, download.key);
    return reply.code(416).header("Content-Range", `bytes */${download.sizeBytes}`).send();
  }
  const { start, end } = range ?? { start: 0, end: download.sizeBytes - 1 };
  const isHead = reply.request.method === "HEAD";
  // First, so that a download that no longer exists is answered without a download's headers.
  const bytes = isHead ? null : await download.open(range ?? undefined);
  setHeaders(reply, download.key);
  if (range) reply.code(206).header("Content-Range", `bytes ${start}-${end}/${download.sizeBytes}`);
  reply.header("Content-Length", String(end - start + 1));
  return bytes === null ? reply.send() : reply.send(Readable.from(bytes, { objectMode: false }));
}

/** One range of bytes (RFC 9110, 14.2); several, or another unit, count as none: the whole object is sent. */
function readRange(
  header: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | "unsatisfiable" | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return null;
  const [first, last] = [match[1] ?? "", match[2] ?? ""];
  const start = first === "" ? Math.max(size - Number(last), 0) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== "" && last !== "" && Number(last) < Number(first)) return null;
  return start > end ? "unsatisfiable" : { start, end };
}
