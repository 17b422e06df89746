import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { WRITERS } from "../engine/writers.ts";
import { textCell, xlsx } from "../nodes/office-files.ts";

/**
 * The ways in which a run's secret could get out by an error, a log or a result (docs/decisions/0014): each is one
 * Blueprint whose run is made to go that way. The secret is typed into a form, and the target gives it back wherever it can.
 */
export interface LeakPath {
  /** The target puts the secret into what is kept or shown: only the nets stand between. Elsewhere nothing may depend on them. */
  readonly echoes?: true;
  /** An author's expression changes what was given back, so that nothing finds it: only the door stands between. */
  readonly changes?: true;
  readonly completes?: true;
  /** `apply` refuses the login today; it was in force before. */
  readonly before?: true;
  /** The login, two spaces deep; the header X-Secret where there is none. */
  readonly login?: string;
  /** What is typed into the form, from the path's own canary. */
  readonly secret?: (canary: string) => string;
  /** The nodes, two spaces deep; one that reads records where there is none. */
  readonly nodes?: string;
  /** Starts a browser. */
  readonly browses?: true;
  /** Where the strategy's requests go, if not to the target. */
  readonly host?: "dead" | "https";
  /** Answers everything of this path; `secret` is what was typed. */
  readonly answer?: (response: ServerResponse, secret: string, request: IncomingMessage) => void;
}

/** A node that reads, one that writes the results, and what stands between them. */
const read = (more: string, between: { readonly id: string; readonly node: string } | null = null): string =>
  `  - { id: read, type: http, credential: slot, retry: { attempts: 2, initial: 5ms }, ${more} }
${between === null ? "" : `  - { id: ${between.id}, from: read, ${between.node} }\n`}\
  - { id: out, type: output, refKey: out, from: ${between?.id ?? "read"} }`;
const RECORDS = "request: { url: {PATH} }, records: items";
const TEXT = "request: { url: {PATH} }";
const parsed = (format: string) => ({ id: "rows", node: `type: parse, format: ${format}` });

const form = (more = ""): string => `
  type: http
  steps:
    - request: { method: POST, url: {PATH}, form: { secret: "{{ $credential.secret }}" } }${more}`;

const json =
  (make: (secret: string) => unknown) =>
  (response: ServerResponse, secret: string): void =>
    void response.setHeader("content-type", "application/json").end(JSON.stringify(make(secret)));

const latin1 = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

/** Bytes instead of HTTP, as a broken or hostile server sends them. */
const raw =
  (make: (secret: string) => string) =>
  (response: ServerResponse, secret: string): void => {
    response.socket?.end(make(secret), () => response.socket?.destroy());
  };

/** The part of a canary that can stand in a host name. */
const hostPart = (secret: string): string => /[a-p]{20,63}/.exec(secret)?.[0] ?? "none";

const LOGINS: Readonly<Record<string, LeakPath>> = {
  "login: refused, with the secret in the answer": {
    echoes: true,
    login: form(),
    answer: (response, secret) =>
      void response.writeHead(403, latin1(secret), { "x-said": latin1(secret) }).end(secret),
  },
  "login: redirected to a host that is named like the secret": {
    secret: hostPart,
    echoes: true,
    login: form("\n      follow: true"),
    answer: (response, secret) =>
      void response.writeHead(303, { location: `http://${hostPart(secret)}.example/` }).end(),
  },
  "login: redirected to something that is not a URL": {
    login: form("\n      follow: true"),
    answer: (response, secret) =>
      void response.writeHead(303, { location: latin1(`http://[${secret}`) }).end(),
  },
  "login: nothing to extract in the page": {
    echoes: true,
    login: form("\n      extract: { opened: { css: '#token' } }"),
    answer: (response, secret) => void response.end(`<p>${secret}</p>`),
  },
  "login: an answer that is not JSON": {
    echoes: true,
    login: form("\n      extract: { opened: { json: token } }"),
    answer: (response, secret) => void response.end(`${secret} {`),
  },
  "login: an expectation of the answer fails": {
    echoes: true,
    login: form("\n      expect: { json: said = 1 }"),
    answer: json((secret) => ({ said: secret })),
  },
  "login: an expression fails on the answer": {
    echoes: true,
    login: form("\n      extract: { opened: { json: $number(said) } }"),
    answer: json((secret) => ({ said: secret })),
  },
  "login: an expression fails on the secret": {
    before: true,
    login: form("\n    - request: { url: {PATH}, query: { n: '{{ $number($credential.secret) }}' } }"),
  },
  "login: an expression throws the secret": {
    before: true,
    login: form("\n    - request: { url: {PATH}, query: { n: '{{ $error($credential.secret) }}' } }"),
  },
  "login: a condition gives the secret": {
    before: true,
    login: form("\n    - when: $credential.secret\n      request: { url: {PATH} }"),
  },
  "login: an object where a text belongs": {
    login: form("\n    - request: { url: {PATH}, query: { n: '{{ {\"a\": $credential.secret} }}' } }"),
  },
  "login: a url that is the secret, and no url": {
    login: "\n  type: http\n  steps:\n    - request: { url: '{{ $credential.secret }}' }",
    secret: (canary) => `http://[${canary}`,
  },
  "login: a url that leads to a host named like the secret": {
    login: "\n  type: http\n  steps:\n    - request: { url: '{{ $credential.secret }}' }",
    secret: (canary) => `http://${hostPart(canary)}.example/`,
  },
  "login: a url with the secret as its password": {
    login: "\n  type: http\n  steps:\n    - request: { url: '{{ $credential.secret }}' }",
    secret: (canary) => `http://user:${hostPart(canary)}@127.0.0.1/`,
  },
  "login: a header that can't hold the secret": {
    login:
      "\n  type: http\n  steps:\n    - request: { url: {PATH}, headers: { X-A: '{{ $credential.secret }}' } }",
    secret: (canary) => `${canary}€`,
  },
  "login: headers that can't hold the secret": { secret: (canary) => `${canary}€` },
  "login: a bearer token with spaces": { login: "\n  type: bearer\n  token: secret" },
  "login: a user name with a colon": {
    login: "\n  type: basic\n  username: secret\n  password: secret",
    secret: (canary) => `${canary}:x`,
  },
};

const EXCHANGES: Readonly<Record<string, LeakPath>> = {
  "request: nobody listens": { host: "dead" },
  "request: no TLS where TLS is expected": { host: "https" },
  "request: the connection is cut before the answer": { answer: raw(() => "") },
  "request: the answer is cut off": {
    answer: raw(
      (secret) => `HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{"items":[{"a":${JSON.stringify(secret)}`,
    ),
  },
  "request: the answer is not HTTP": { answer: raw((secret) => `${secret}\r\n${secret}\r\n\r\n`) },
  "request: a header that is none": {
    answer: raw((secret) => `HTTP/1.1 200 OK\r\n${secret}\u0000: ${secret}\r\n\r\n`),
  },
  "request: headers that are too long": {
    answer: raw((secret) => `HTTP/1.1 200 OK\r\nx-said: ${secret.repeat(1_500)}\r\n\r\n`),
  },
  "request: a redirect to a host that is named like the secret": {
    secret: hostPart,
    echoes: true,
    answer: (response, secret) =>
      void response.writeHead(302, { location: `http://${hostPart(secret)}.example/` }).end(),
  },
  "request: redirects without end, by the secret": {
    answer: (response, secret) =>
      void response.writeHead(302, { location: `?again=${encodeURIComponent(secret)}` }).end(),
  },
  "request: a link to the next page at a host named like the secret": {
    nodes: read("request: { url: {PATH} }, records: items, paginate: { link_header: true }"),
    answer: (response, secret) => {
      response.setHeader("link", `<http://${hostPart(secret)}.example/>; rel="next"`);
      json(() => ({ items: [{ a: 1 }] }))(response, secret);
    },
  },
  "answer: damaged compression": {
    answer: (response, secret) =>
      void response.setHeader("content-encoding", "gzip").end(gzipSync(secret.repeat(99)).subarray(0, 60)),
  },
  "answer: an encoding that is named like the secret": {
    answer: (response, secret) => void response.setHeader("content-encoding", hostPart(secret)).end(secret),
  },
  "answer: too large": {
    nodes: read("request: { url: {PATH} }, records: items, max_bytes: 100"),
    answer: json((secret) => ({ items: [{ a: secret.repeat(20) }] })),
  },
  "answer: too late": {
    nodes: read("request: { url: {PATH} }, records: items, timeout: 150ms"),
    answer: (response, secret) => void setTimeout(() => response.end(secret), 400).unref(),
  },
  "answer: a status that is not expected": {
    echoes: true,
    answer: (response, secret) => void response.writeHead(500, latin1(secret)).end(secret),
  },
  "answer: a text that is not there": {
    echoes: true,
    nodes: read("request: { url: {PATH} }, records: items, expect: { text: 'welcome' }"),
    answer: (response, secret) => void response.end(secret),
  },
  "answer: no JSON": {
    echoes: true,
    answer: (response, secret) => void response.end(`${secret}{"`),
  },
  "answer: no text, of a type that is named like the secret": {
    secret: hostPart,
    echoes: true,
    nodes: read(TEXT, parsed("json")),
    answer: (response, secret) =>
      void response.setHeader("content-type", `text/${hostPart(secret)}`).end(Buffer.from([0xff, 0xfe, 0])),
  },
  "answer: no text, of a type that is longer than a message shows": {
    echoes: true,
    secret: (canary) => hostPart(canary).repeat(2),
    nodes: read(TEXT, parsed("json")),
    answer: (response, secret) =>
      void response.setHeader("content-type", `text/${secret}`).end(Buffer.from([0xff, 0xfe, 0])),
  },
};

const KEPT: Readonly<Record<string, LeakPath>> = {
  "records: the list is a text": {
    echoes: true,
    nodes: read("request: { url: {PATH} }, records: said"),
    answer: json((secret) => ({ said: secret })),
  },
  "records: the expression fails on the answer": {
    echoes: true,
    nodes: read("request: { url: {PATH} }, records: $number(said)"),
    answer: json((secret) => ({ said: secret })),
  },
  "records: the expression throws the answer": {
    echoes: true,
    nodes: read("request: { url: {PATH} }, records: $error(said)"),
    answer: json((secret) => ({ said: secret })),
  },
  "records: echoed in every encoding, as key and inside numbers": {
    echoes: true,
    completes: true,
    // Too large for a row: its output and its result are objects.
    answer: json((secret) => ({
      items: [{ ...echoes(secret), [secret]: [[{ deep: secret }]], filler: "x".repeat(10_000) }],
    })),
  },
  "text: echoed, and parsed by a later node": {
    secret: hostPart,
    echoes: true,
    completes: true,
    nodes: read(TEXT, parsed("csv")),
    answer: (response, secret) =>
      void response.end(`said,again\n${hostPart(secret)},"${hostPart(secret)}"\n`),
  },
  "map: the expression fails on what was echoed": {
    echoes: true,
    nodes: read(RECORDS, { id: "made", node: "type: map, fields: { n: $number(a) }" }),
    answer: json((secret) => ({ items: [{ a: secret }] })),
  },
  "validate: the record that was echoed is not valid": {
    echoes: true,
    completes: true,
    nodes: read(RECORDS, {
      id: "checked",
      node: "type: validate, schema: { type: object, properties: { a: { const: other } }, additionalProperties: false }",
    }),
    answer: json((secret) => ({ items: [{ a: secret, [secret]: 1 }] })),
  },
  "database: it refuses the results": {
    nodes: read(RECORDS).replace("refKey: out", "refKey: refused_by_the_database"),
    answer: json(() => ({ items: [{ a: 1 }] })),
  },
};

const BACKWARD = "$join($reverse($split(said, '')), '')";
const LETTERS = "$join($split(said, ''), ' ')";

/** What an author's expressions make of what the target gives back. */
const CHANGED: Readonly<Record<string, LeakPath>> = {
  "author: reversed, in the node that reads it": {
    echoes: true,
    changes: true,
    completes: true,
    nodes: read(`request: { url: {PATH} }, records: "{ 'a': ${BACKWARD} }"`),
    answer: json((secret) => ({ said: secret })),
  },
  "author: letter by letter, in a later node": {
    echoes: true,
    completes: true,
    nodes: read(RECORDS, { id: "made", node: `type: map, fields: { a: "${LETTERS}" }` }),
    answer: json((secret) => ({ items: [{ said: secret }] })),
  },
  "author: reversed, of a sheet, which is packed": {
    secret: hostPart,
    echoes: true,
    changes: true,
    completes: true,
    nodes: `  - { id: file, type: http, credential: slot, request: { url: {PATH} }, save: file }
  - { id: read, type: parse, from: file, format: xlsx }
  - { id: made, type: map, from: read, fields: { a: "${BACKWARD}" } }
  - { id: out, type: output, refKey: out, from: made }`,
    answer: (response, secret) =>
      void response.end(xlsx({ one: [textCell("A1", "said"), textCell("A2", hostPart(secret))] })),
  },
  "author: a cookie of the login, reversed": {
    echoes: true,
    changes: true,
    completes: true,
    login: form(),
    nodes: read(`request: { url: {PATH} }, records: "{ 'a': ${BACKWARD} }"`),
    answer: (response, secret) => {
      response.setHeader("set-cookie", `sid=${hostPart(secret)}; Path=/`);
      json(() => ({ said: hostPart(secret) }))(response, secret);
    },
  },
  "author: a cookie of the login, kept and sent on": {
    echoes: true,
    completes: true,
    login: form(),
    nodes: `  - { id: read, type: http, credential: slot, request: { url: {PATH} }, records: items }
  - { id: sent, type: http, credential: slot, for_each: read, request: { url: {PATH}, method: POST, headers: { X-CSRF: "{{ said }}" }, json: { a: "{{ said }}" } }, records: items }
  - { id: out, type: output, refKey: out, from: sent }`,
    answer: (response, secret) => {
      response.setHeader("set-cookie", `sid=${hostPart(secret)}; Path=/`);
      json(() => ({ items: [{ said: hostPart(secret), link: `/next?sid=${hostPart(secret)}` }] }))(
        response,
        secret,
      );
    },
  },
};

const page = (response: ServerResponse, body: string): void =>
  void response
    .setHeader("content-type", "text/html; charset=utf-8")
    .end(`<!doctype html><title>Portal</title>${body}`);
const inHtml = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const FORM =
  "<form method=post><label>Secret <input name=secret type=password></label><button>Go</button></form>";
/** A page that shows the secret as a text, as the name of a button and in its console. */
const showing = (secret: string): string =>
  `<h1>${inHtml(secret)}</h1><button>${inHtml(secret)}</button><script>console.error(${JSON.stringify(secret).replaceAll("<", "\\u003c")})</script>`;

/** What operators are shown of a page when a step fails. */
const BROWSERS: Readonly<Record<string, LeakPath>> = {
  "browser: a login fails on a page that shows the secret": {
    echoes: true,
    browses: true,
    login: `
  type: browser
  steps:
    - goto: {PATH}
    - fill: { label: Secret, with: "{{ $credential.secret }}" }
    - click: { role: button, name: Go }
    - click: { role: button, name: Next }
      timeout: 500ms`,
    secret: hostPart,
    answer: (response, secret, { method }) => page(response, method === "POST" ? showing(secret) : FORM),
  },
  "browser: a step fails on a page that shows the secret": {
    echoes: true,
    browses: true,
    login: form(),
    nodes: `  - id: read
    type: browser
    credential: slot
    retry: { attempts: 1 }
    steps:
      - goto: {PATH}
      - click: { role: button, name: Next }
        timeout: 500ms
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }`,
    answer: (response, secret) => page(response, showing(secret)),
  },
};

function echoes(secret: string): Readonly<Record<string, string>> {
  const byWriter = Object.entries(WRITERS).map(([name, write]): [string, string] => [name, write(secret)]);
  return {
    ...Object.fromEntries(byWriter),
    within: `before ${secret} after`,
    json: JSON.stringify({ secret }),
    jsonInJson: JSON.stringify(JSON.stringify({ secret })),
    basic: `Basic ${Buffer.from(`user:${secret}`).toString("base64")}`,
    upperHex: Buffer.from(secret, "utf8").toString("hex").toUpperCase(),
  };
}

export const LEAK_PATHS: Readonly<Record<string, LeakPath>> = {
  ...LOGINS,
  ...EXCHANGES,
  ...KEPT,
  ...CHANGED,
  ...BROWSERS,
};

export const DEFAULT_LOGIN = '\n  type: headers\n  headers: { X-Secret: "{{ $credential.secret }}" }';
export const DEFAULT_NODES = read(RECORDS);
