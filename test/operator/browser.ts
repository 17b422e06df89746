import { request, type IncomingHttpHeaders } from "node:http";
import { totpCode } from "#domain/totp.ts";

/** An answer of the operator API. */
export interface OperatorAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: any;
}

/** A browser with one cookie jar, as far as the operator API sees one: it sends what a page of the service would send. */
export interface Browser {
  /** What it holds: `name=value`, or an empty text. */
  cookie: string;
  /** What says that an operator has signed in here before: `name=value`, or an empty text. */
  known: string;
  csrf: string;
  /** Where it asks from. */
  readonly address: string;
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<OperatorAnswer>;
  signIn(email: string, password: string, code?: string): Promise<OperatorAnswer>;
  /** Sets up an authenticator app; gives its key. */
  enrol(password: string): Promise<{ readonly secret: string; readonly recoveryCodes: readonly string[] }>;
}

/** Sends exactly these headers: `fetch` knows no Cookie and adds its own. */
export async function sendPlain(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
  localAddress = "127.0.0.1",
): Promise<OperatorAnswer> {
  return await new Promise((resolve, reject) => {
    const sent = request(url, { method, agent: false, headers, localAddress }, (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      // It has no end; what it tells is another test's.
      if ((answered["content-type"] ?? "").startsWith("text/event-stream")) {
        response.destroy();
        return resolve({ status, headers: answered, text: "", body: undefined });
      }
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        const isJson = (answered["content-type"] ?? "").startsWith("application/json");
        const parsed: unknown = isJson ? JSON.parse(text) : undefined;
        resolve({ status, headers: answered, text, body: parsed });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

let opened = 0;

/** Each from an address of its own: sign-ins of an address are counted. */
export function openBrowser(serviceUrl: string): Browser {
  const localAddress = `127.7.${Math.floor(++opened / 250)}.${(opened % 250) + 1}`;
  const browser: Browser = {
    cookie: "",
    known: "",
    csrf: "",
    address: localAddress,
    send: async (method, path, body, headers = {}) => {
      const cookies = [browser.cookie, browser.known].filter((pair) => pair !== "");
      const text = body === undefined ? undefined : JSON.stringify(body);
      const answer = await sendPlain(
        `${serviceUrl}/operator/v1${path}`,
        method,
        {
          ...(cookies.length === 0 ? {} : { Cookie: cookies.join("; ") }),
          ...(method === "GET"
            ? {}
            : {
                Origin: new URL(serviceUrl).origin,
                "Sec-Fetch-Site": "same-origin",
                "X-CSRF-Token": browser.csrf || "none yet",
              }),
          ...(text === undefined
            ? {}
            : { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(text)) }),
          ...headers,
        },
        text,
        localAddress,
      );
      const given = answer.headers["set-cookie"] ?? [];
      const known = given.find((each) => each.includes("latchkey_operator_browser_"));
      if (known !== undefined) browser.known = known.split(";")[0] ?? "";
      const set = given.find((each) => each !== known);
      if (set !== undefined) browser.cookie = (set.split(";")[0] ?? "").replace(/^[^=]*=$/, "");
      const csrf: unknown = answer.body?.csrf_token ?? answer.body?.me?.csrf_token;
      if (typeof csrf === "string") browser.csrf = csrf;
      return answer;
    },
    signIn: async (email, password, code) =>
      await browser.send("POST", "/session", { email, password, ...(code === undefined ? {} : { code }) }),
    enrol: async (password) => {
      const begun = await browser.send("POST", "/me/second-factor", { current_password: password });
      if (begun.status !== 200) throw new Error(begun.text);
      const { secret } = begun.body;
      const confirmed = await browser.send("POST", "/me/second-factor/confirm", { code: codeOf(secret) });
      if (confirmed.status !== 200) throw new Error(confirmed.text);
      return { secret, recoveryCodes: confirmed.body.recovery_codes };
    },
  };
  return browser;
}

/** What the operator's app shows; `steps` later. */
export function codeOf(secretBase32: string, steps = 0): string {
  const settings = { secretBase32, algorithm: "SHA1", digits: 6, periodSeconds: 30 } as const;
  return totpCode(settings, Date.now() + steps * 30_000).code;
}
