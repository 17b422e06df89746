/** How a download of results comes, from whichever store. Design, page 1, Presigned download. */
export interface DownloadHeaders {
  readonly contentType: string;
  readonly contentDisposition: string;
  readonly cacheControl: string;
}

/** No `Content-Encoding`, so that no client decompresses it twice. */
export function downloadHeaders(resultKey: string): DownloadHeaders {
  // For clients that don't read `filename*`: what a quoted string may hold.
  const ascii = resultKey.replace(/[^\w.-]/g, "_");
  return {
    contentType: "application/octet-stream",
    contentDisposition: `attachment; filename="${ascii}.json.br"; filename*=UTF-8''${encodeURIComponent(`${resultKey}.json.br`)}`,
    cacheControl: "private, no-store",
  };
}
