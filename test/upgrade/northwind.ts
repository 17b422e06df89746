import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Secret, TOTP } from "otpauth";
import { openTarget, to, type Answer, type Seen, type Target } from "../documents/target.ts";

/**
 * The other company of the upgrade fixtures. Their documents and their audit entries name its address, so it is always the same one: of
 * loopback, where hardly anybody listens. Frozen installations need all of this as it is; a new one may add to it.
 */
const PLACE = { host: "127.46.0.7", port: 4600 };
export const ORIGIN = `http://${PLACE.host}:${PLACE.port}`;
/** Another run of the same test on this machine has the address for some seconds. */
const PATIENCE_MS = 60_000;

export const PASSWORDS = {
  ada: "ada-of-northwind-5Kd8",
  bea: "bea-of-northwind-2Qm7",
  cyd: "cyd-of-northwind-9Tz4",
} as const;
export const TOTP_KEY = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
export const SECRETS = {
  bearer: "bearer-of-northwind-3Xw6",
  basic: "basic-of-northwind-8Hs1",
  header: "header-of-northwind-4Rn9",
  query: "query-of-northwind-7Bc2",
  client: "client-of-northwind-6Lf5",
} as const;

export interface Northwind extends Target {
  /** The only refresh token that is worth something; every use gives another. */
  refreshToken: string;
  /** What may go wrong from now on: an order with one of these numbers is answered 500. */
  readonly brokenOrders: Set<string>;
}

/** `nowMs`: its clock, which one-time codes go by. */
export async function openNorthwind(nowMs: () => number = Date.now): Promise<Northwind> {
  const target = Object.assign(await listen(), { refreshToken: "", brokenOrders: new Set<string>() });
  target.on("GET /archive", { json: { items: records("archive", 62) } });
  target.on("GET /first", { json: { items: records("first", 62) } });
  target.on("GET /second", { json: { items: records("second", 2) } });
  target.on("GET /report", {
    text: "sku,n\nbolt,4\nnut,9\n",
    headers: { "content-type": "text/csv", "content-disposition": 'attachment; filename="stock.csv"' },
  });
  target.on("POST /orders", ({ body }) =>
    target.brokenOrders.has(JSON.parse(body).number) ? { status: 500 } : { status: 201, json: {} },
  );
  addSignIn(target, nowMs);
  addTokens(target);
  addOAuth(target);
  return target;
}

async function listen(): Promise<Target> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await openTarget({}, PLACE);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (!isTaken || performance.now() > deadline) throw error;
      await sleep(100);
    }
  }
}

/** The same ones whenever they are asked for. More than some sixty don't fit a row. */
function records(of: string, count: number): readonly object[] {
  return Array.from({ length: count }, (_, index) => {
    const digest = createHash("sha256").update(`${of} ${index}`).digest("hex");
    return { number: `${of}-${index}`, total: Number.parseInt(digest.slice(0, 5), 16) / 100, note: digest };
  });
}

const REFUSED: Answer = { status: 401, json: {} };
const isPerson = (name: string | null): name is keyof typeof PASSWORDS =>
  name !== null && Object.hasOwn(PASSWORDS, name);
const cookieOf = (name: string): string => `sid=session-of-${name}`;

/** Forms with a password; one wants a one-time code too. */
function addSignIn(target: Target, nowMs: () => number): void {
  const signIn = ({ body }: Seen): Answer => {
    const form = new URLSearchParams(body);
    const name = form.get("username");
    if (!isPerson(name) || form.get("password") !== PASSWORDS[name]) return REFUSED;
    return { status: 302, headers: { location: "/", "set-cookie": `${cookieOf(name)}; Path=/; HttpOnly` } };
  };
  const withCookie =
    (answer: (name: string) => unknown) =>
    ({ headers }: Seen): Answer => {
      const name = Object.keys(PASSWORDS).find((each) => headers.cookie === cookieOf(each));
      return name === undefined ? REFUSED : { json: answer(name) };
    };
  target.on("POST /login", signIn);
  target.on(
    "GET /me",
    withCookie((name) => ({ name })),
  );
  target.on(
    "GET /invoices",
    withCookie((name) => ({ items: records(`invoices of ${name}`, 3) })),
  );
  const date = (): Record<string, string> => ({ date: new Date(nowMs()).toUTCString() });
  target.on("GET /code", () => ({ headers: date() }));
  target.on("POST /code", (seen) => {
    const code = new URLSearchParams(seen.body).get("code") ?? "";
    const totp = new TOTP({ secret: Secret.fromBase32(TOTP_KEY) });
    const isRight = totp.validate({ token: code, timestamp: nowMs(), window: 1 }) !== null;
    const answer = isRight ? signIn(seen) : REFUSED;
    return { ...answer, headers: { ...answer.headers, ...date() } };
  });
}

/** What is sent with each request. */
function addTokens(target: Target): void {
  const basic = `Basic ${Buffer.from(`ada:${SECRETS.basic}`).toString("base64")}`;
  const given = (isRight: boolean, by: string): Answer => (isRight ? { json: records(by, 2) } : REFUSED);
  target.on("GET /bearer", ({ headers }) =>
    given(headers.authorization === `Bearer ${SECRETS.bearer}`, "bearer"),
  );
  target.on("GET /basic", ({ headers }) => given(headers.authorization === basic, "basic"));
  target.on("GET /header", ({ headers }) => given(headers["x-key"] === SECRETS.header, "header"));
  target.on("GET /query", ({ query }) => given(query.get("api_key") === SECRETS.query, "query"));
}

const ACCESS = /^Bearer access-of-northwind-\d+$/;

/** Sends people back at once. Its access tokens are over before they are used a second time. */
function addOAuth(target: Northwind): void {
  let given = 0;
  target.on("GET /oauth/authorize", ({ query }) => {
    const back = new URL(query.get("redirect_uri") ?? "");
    back.searchParams.set("code", "code-of-northwind");
    back.searchParams.set("state", query.get("state") ?? "");
    return to(back.href);
  });
  target.on("POST /oauth/token", ({ headers, body }) => {
    const form = new URLSearchParams(body);
    const client = Buffer.from(headers.authorization?.replace("Basic ", "") ?? "", "base64").toString();
    const isRight =
      // RFC 6749, 2.3.1: form-encoded.
      decodeURIComponent(client) === `latchkey:${SECRETS.client}` &&
      (form.get("code") === "code-of-northwind" || form.get("refresh_token") === target.refreshToken);
    if (!isRight) return { status: 400, json: { error: "invalid_grant" } };
    target.refreshToken = `refresh-of-northwind-${randomBytes(9).toString("hex")}`;
    const tokens = {
      access_token: `access-of-northwind-${++given}`,
      refresh_token: target.refreshToken,
    };
    return { json: { ...tokens, token_type: "Bearer", expires_in: 30 } };
  });
  target.on("GET /oauth/items", ({ headers }) =>
    ACCESS.test(headers.authorization ?? "") ? { json: records("oauth", 2) } : REFUSED,
  );
}
