import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { load } from "cheerio";

/** An answer as it came over the wire: `fetch` would hide or add headers that these tests are about. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface WireRequest {
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Buffer | undefined;
  /** The request target as written, e.g. with a broken escape; default the URL's own. */
  readonly path?: string | undefined;
}

export async function send(url: string, options: WireRequest = {}): Promise<WireAnswer> {
  const { method = "GET", headers = {}, body, path } = options;
  const { hostname, port, pathname, search } = new URL(url);
  return await new Promise((resolve, reject) => {
    const request = httpRequest({
      hostname,
      port,
      path: path ?? pathname + search,
      method,
      headers,
      agent: false,
    });
    request.once("error", reject).once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject).once("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    request.end(body);
  });
}

/** The hidden `_csrf` of a page that shows the form. */
export function csrfOf(page: string): string {
  const value = load(page)("form input[name=_csrf]").attr("value");
  if (value === undefined) throw new Error(`no form on this page:\n${page}`);
  return value;
}

export async function openForm(hostedUrl: string): Promise<{ readonly page: string; readonly csrf: string }> {
  const { status, text } = await send(hostedUrl);
  if (status !== 200) throw new Error(`the form answered ${status}:\n${text}`);
  return { page: text, csrf: csrfOf(text) };
}

/** Submits as a browser's form does; `csrf` is the page's own unless given (null: left out). */
export async function submit(
  hostedUrl: string,
  values: Readonly<Record<string, string>> | ReadonlyArray<readonly [string, string]>,
  options: { readonly csrf?: string | null; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<WireAnswer> {
  const csrf = options.csrf === undefined ? (await openForm(hostedUrl)).csrf : options.csrf;
  const body = new URLSearchParams(csrf === null ? [] : [["_csrf", csrf]]);
  for (const [name, value] of Array.isArray(values) ? values : Object.entries(values))
    body.append(name, value);
  return await send(hostedUrl, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...options.headers },
    body: body.toString(),
  });
}
