/** Every login type with fields to fill in and a target that says what it was sent: the same table for page and frame. */
import { createHash, randomUUID } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import { must } from "#lib/assert.ts";
import type { Answer, Seen, Target } from "../documents/target.ts";
import { certificate } from "../documents/tls-target.ts";

const TOTP_KEY = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const PASSWORD_BYTES = 16_384;
const PIECE = "aä€🔑e\u0301 \u00a0\u202e%+&=;\"'<>\\";

/** 16 KiB of mixed UTF-8, which begins with something of its own. */
function longPassword(): string {
  const begin = randomUUID();
  const left = PASSWORD_BYTES - Buffer.byteLength(begin);
  const pieces = Math.floor(left / Buffer.byteLength(PIECE));
  return begin + PIECE.repeat(pieces) + "x".repeat(left - pieces * Buffer.byteLength(PIECE));
}

type Values = Readonly<Record<string, string>>;

/** What came to the target of one credential: its requests, and the certificates that were presented. */
export interface Arrived {
  readonly requests: readonly Seen[];
  readonly clients: readonly string[];
}

export interface LoginCase {
  readonly fields: readonly (Readonly<Record<string, unknown>> & {
    readonly key: string;
    readonly type: string;
  })[];
  readonly login: (target: string) => Readonly<Record<string, unknown>> & { readonly type: string };
  /** Whether the target asks for a client certificate. */
  readonly isTls?: true;
  /** What is typed, by field; new ones each time. */
  readonly values: () => Values;
  /** What a name must be typed into at the target's own login. */
  readonly signIn?: true;
  /** What the target says that it was sent, and what it must have been. */
  readonly arrived: (arrived: Arrived, values: Values) => unknown;
  readonly wanted: (values: Values) => unknown;
}

const sha256 = (given: string): string => createHash("sha256").update(given, "utf8").digest("hex");
const text = (key: string) => ({ key, type: "text" });
const secret = (key: string) => ({ key, type: "password" });
const user = () => `ada-${randomUUID()}`;
const login = () => ({ user: user(), pass: `p&=+ ä€🔑 ${randomUUID()}` });

/** The last request of the run itself, which carries what the login gave. */
const asked = ({ requests }: Arrived): Seen | undefined =>
  requests.findLast(({ path }) => path === "/api/read");
const header = (name: string) => (arrived: Arrived) => asked(arrived)?.headers[name];
const sent = ({ requests }: Arrived, path: string): URLSearchParams =>
  new URLSearchParams(
    requests.findLast((request) => request.path === path && request.method === "POST")?.body,
  );

export const LOGIN_CASES: Readonly<Record<string, LoginCase>> = {
  none: {
    fields: [text("user"), secret("pass")],
    login: () => ({ type: "none" }),
    values: login,
    // Stored, and sent nowhere.
    arrived: (arrived, { user: name = "", pass = "" }) => {
      const { query, headers } = must(asked(arrived), "the request of the run");
      const all = `${query.toString()} ${JSON.stringify(headers)}`;
      return [arrived.requests.length, all.includes(name), all.includes(pass), headers.authorization];
    },
    wanted: () => [1, false, false, undefined],
  },
  "basic, with 16 KiB of mixed UTF-8 as its password": {
    fields: [text("user"), secret("pass")],
    login: () => ({ type: "basic", username: "user", password: "pass" }),
    values: () => ({ user: user(), pass: longPassword() }),
    arrived: (arrived) =>
      Buffer.from(String(header("authorization")(arrived)).replace(/^Basic /, ""), "base64").toString("utf8"),
    wanted: ({ user: name, pass }) => `${name}:${pass}`,
  },
  "digest, proven to its check": {
    fields: [text("user"), secret("pass")],
    login: () => ({
      type: "digest",
      username: "user",
      password: "pass",
      check: { request: { url: "/digest" } },
    }),
    values: login,
    arrived: ({ requests }, { user: name = "", pass = "" }) => {
      const given = requests.findLast(({ path }) => path === "/digest")?.headers.authorization ?? "";
      const part = (key: string): string => new RegExp(`\\b${key}="?([^",]*)`).exec(given)?.[1] ?? "";
      const key = sha256(`${name}:portal:${pass}`);
      const proof = `${key}:once:${part("nc")}:${part("cnonce")}:auth:${sha256("GET:/digest")}`;
      return [part("username"), part("response") === sha256(proof)];
    },
    wanted: ({ user: name }) => [name, true],
  },
  bearer: {
    fields: [secret("token")],
    login: () => ({ type: "bearer", token: "token" }),
    values: () => ({ token: `tk-${randomUUID()}` }),
    arrived: header("authorization"),
    wanted: ({ token }) => `Bearer ${token}`,
  },
  "headers, of the author and of the end user": {
    fields: [secret("key"), { key: "extra", type: "headers" }],
    login: () => ({ type: "headers", headers: { "X-Api-Key": "{{ $credential.key }}" }, from: "extra" }),
    values: () => ({ key: randomUUID(), extra: randomUUID() }),
    arrived: (arrived) => [header("x-api-key")(arrived), header("x-extra")(arrived)],
    wanted: ({ key, extra }) => [key, extra],
  },
  query: {
    fields: [secret("key")],
    login: () => ({ type: "query", params: { api_key: "{{ $credential.key }}" } }),
    values: () => ({ key: `k 7&=ä ${randomUUID()}` }),
    arrived: (arrived) => asked(arrived)?.query.getAll("api_key"),
    wanted: ({ key }) => [key],
  },
  "http, a form of a page and a one-time code": {
    fields: [text("user"), secret("pass"), { key: "code", type: "totp_secret" }],
    login: () => ({
      type: "http",
      steps: [
        { request: { url: "/login" } },
        {
          submit: {
            form: "form",
            fields: {
              user: "{{ $credential.user }}",
              pass: "{{ $credential.pass }}",
              code: "{{ $credential.code.code }}",
            },
          },
        },
      ],
    }),
    values: () => ({ ...login(), code: TOTP_KEY }),
    arrived: (arrived) => {
      const form = sent(arrived, "/login");
      const totp = new TOTP({ secret: Secret.fromBase32(TOTP_KEY) });
      const isCode = totp.validate({ token: form.get("code") ?? "", window: 5 }) !== null;
      return [form.get("user"), form.get("pass"), form.get("hidden"), isCode, header("cookie")(arrived)];
    },
    wanted: ({ user: name, pass }) => [name, pass, "of the page", true, "session=of-the-form"],
  },
  "browser, a form that is drawn by script": {
    fields: [text("user"), secret("pass")],
    login: () => ({
      type: "browser",
      steps: [
        { goto: "/drawn" },
        { fill: { label: "User", with: "{{ $credential.user }}" } },
        { fill: { label: "Password", with: "{{ $credential.pass }}" } },
        { click: { role: "button", name: "Sign in" } },
        { expect: { visible: { role: "heading", name: "Signed in" } } },
      ],
      session: { headers: { Authorization: "Bearer {{ $storage.session.token }}" } },
    }),
    values: login,
    arrived: (arrived) => [
      JSON.parse(arrived.requests.find(({ path }) => path === "/api/login")?.body ?? "null"),
      header("authorization")(arrived),
    ],
    wanted: (values) => [values, `Bearer json-${values["user"]}`],
  },
  "http, JSON and the token that it answers": {
    fields: [text("user"), secret("pass")],
    login: () => ({
      type: "http",
      steps: [
        {
          request: {
            method: "POST",
            url: "/api/login",
            json: { user: "{{ $credential.user }}", pass: "{{ $credential.pass }}" },
          },
          extract: { given: { json: "token" } },
        },
      ],
      session: { headers: { Authorization: "Bearer {{ $given }}" } },
    }),
    values: login,
    arrived: (arrived) => [
      JSON.parse(arrived.requests.find(({ path }) => path === "/api/login")?.body ?? "null"),
      header("authorization")(arrived),
    ],
    wanted: (values) => [values, `Bearer json-${values["user"]}`],
  },
  "oauth2, a sign-in at the target": {
    fields: [],
    login: (target) => ({
      type: "oauth2",
      authorization_url: `${target}/authorize`,
      token_url: `${target}/token`,
      client_id: "latchkey",
    }),
    values: () => ({ user: user() }),
    signIn: true,
    arrived: header("authorization"),
    wanted: ({ user: name }) => `Bearer agreed-${name}`,
  },
  "oauth2, a client of the end user": {
    fields: [text("id"), secret("secret")],
    login: (target) => ({
      type: "oauth2",
      grant: "client_credentials",
      token_url: `${target}/token`,
      client_id: "{{ $credential.id }}",
      client_secret: "{{ $credential.secret }}",
      token_auth: "client_secret_post",
    }),
    values: () => ({ id: user(), secret: `s&=+ ä ${randomUUID()}` }),
    arrived: (arrived) => [
      sent(arrived, "/token").get("client_id"),
      sent(arrived, "/token").get("client_secret"),
      header("authorization")(arrived),
    ],
    wanted: ({ id, secret: own }) => [id, own, `Bearer client-${id}`],
  },
  "oauth2, a user name and a password": {
    fields: [text("user"), secret("pass")],
    login: (target) => ({
      type: "oauth2",
      grant: "password",
      token_url: `${target}/token`,
      client_id: "latchkey",
      username: "user",
      password: "pass",
    }),
    values: login,
    arrived: (arrived) => [
      sent(arrived, "/token").get("username"),
      sent(arrived, "/token").get("password"),
      header("authorization")(arrived),
    ],
    wanted: ({ user: name, pass }) => [name, pass, `Bearer user-${name}`],
  },
  mtls: {
    isTls: true,
    fields: [{ key: "cert", type: "file" }, { key: "key", type: "file" }, secret("word")],
    login: () => ({ type: "mtls", certificate: "cert", key: "key", passphrase: "word" }),
    values: () => ({
      cert: certificate("client.pem"),
      key: certificate("client.locked.key.pem"),
      word: "correct-horse",
    }),
    arrived: ({ clients }) => clients,
    wanted: () => ["client"],
  },
};

/** A target that takes all of these logins, and says in its answers who has logged in. */
export function answerLogins(target: Target): void {
  target.on("GET /api/read", { json: [{ ok: true }] });
  const form = `<form method="post" action="/login"><input type="hidden" name="hidden" value="of the page">
    <input name="user"><input name="pass" type="password"><input name="code"></form>`;
  target.on("GET /digest", ({ headers }) =>
    headers.authorization === undefined
      ? {
          status: 401,
          headers: {
            "www-authenticate": 'Digest realm="portal", nonce="once", qop="auth", algorithm=SHA-256',
          },
        }
      : { text: "ok" },
  );
  target.on("GET /login", { html: form });
  target.on("POST /login", {
    html: "<p>Welcome",
    headers: { "set-cookie": "session=of-the-form; Path=/; HttpOnly" },
  });
  target.on("GET /drawn", { html: DRAWN });
  target.on("POST /api/login", ({ body }) => ({
    json: { token: `json-${(JSON.parse(body) as { user: string }).user}` },
  }));
  target.on("GET /authorize", ({ query }) => ({ html: signInPage(query) }));
  target.on("GET /agree", ({ query }) => {
    const back = new URL(query.get("redirect_uri") ?? "");
    back.searchParams.set("code", `code-${query.get("user")}`);
    back.searchParams.set("state", query.get("state") ?? "");
    return { status: 302, headers: { location: back.href } };
  });
  target.on("POST /token", ({ body }) => tokenFor(new URLSearchParams(body)));
}

/** A form that only script makes, and a token that only script keeps. */
const DRAWN = `<!doctype html><title>Sign in</title><link rel="icon" href="data:,"><main></main><script>
const main = document.querySelector("main");
main.innerHTML = '<label>User <input></label><label>Password <input type="password"></label><button>Sign in</button>';
const [user, pass] = main.querySelectorAll("input");
main.querySelector("button").onclick = async () => {
  const body = JSON.stringify({ user: user.value, pass: pass.value });
  const { token } = await (await fetch("/api/login", { method: "POST", body })).json();
  sessionStorage.setItem("token", token);
  main.innerHTML = "<h1>Signed in</h1>";
};
</script>`;

const signInPage = (query: URLSearchParams): string => {
  const hidden = ["redirect_uri", "state"].map((name) => {
    const value = (query.get(name) ?? "").replaceAll('"', "&quot;");
    return `<input type="hidden" name="${name}" value="${value}">`;
  });
  // With an icon: a browser would ask for one, and complain that there is none.
  return `<!doctype html><title>Sign in</title><link rel="icon" href="data:,">
<form action="/agree">${hidden.join("")}<input name="user"></form>`;
};

function tokenFor(form: URLSearchParams): Answer {
  const who: Readonly<Record<string, string>> = {
    authorization_code: `agreed-${form.get("code")?.replace("code-", "")}`,
    client_credentials: `client-${form.get("client_id")}`,
    password: `user-${form.get("username")}`,
  };
  const token = who[form.get("grant_type") ?? ""];
  return token === undefined
    ? { status: 400, json: { error: "unsupported_grant_type" } }
    : { json: { access_token: token, token_type: "Bearer", expires_in: 3_600 } };
}
