/** The methods of requests of logins and nodes: HTTP's (RFC 9110), and WebDAV's (RFC 4918; REPORT: RFC 3253, 3.6). */
export const HTTP_METHODS = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "PROPFIND",
  "REPORT",
  "MKCOL",
  "COPY",
  "MOVE",
] as const;

/** The methods that may look up a write. */
export const LOOK_UP_METHODS = ["GET", "HEAD", "POST", "PROPFIND", "REPORT"] as const;

const READS: ReadonlySet<unknown> = new Set(["GET", "HEAD", "PROPFIND", "REPORT"]);

/** Whether the method changes nothing by its definition ("safe": RFC 9110, 9.2.1), so that it may be sent again. */
export const isReadMethod = (method: unknown): boolean => READS.has(method);

export const hasNoBody = (method: unknown): boolean => method === "GET" || method === "HEAD";

/** RFC 4918, 9.8.3 and 9.9.3: the header `Destination` contains the target. */
export const hasDestination = (method: unknown): boolean => method === "COPY" || method === "MOVE";
