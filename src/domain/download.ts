/** The headers of a download of results, from any store. docs/api.md#results. */
export interface DownloadHeaders {
  readonly contentType: string;
  readonly contentDisposition: string;
  readonly cacheControl: string;
}

/** No `Content-Encoding`, so that no client decompresses it twice. */
export function downloadHeaders(resultKey: string): DownloadHeaders {
  return {
    contentType: "application/octet-stream",
    contentDisposition: attachment(`${resultKey}.json.br`),
    cacheControl: "private, no-store",
  };
}

/** A browser saves it and never displays it. */
export function attachment(filename: string): string {
  // For clients that don't read `filename*`: only characters that a quoted string may contain.
  const ascii = filename.replace(/[^\w.-]/g, "_");
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encodeURIComponent(filename)}`;
}
