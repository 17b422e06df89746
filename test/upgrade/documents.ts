import { ORIGIN } from "./northwind.ts";

/** A picture of one pixel. */
const LOGO =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

const strategy = (id: string, rest: string, account = "acme"): string => `strategy: ${id}
account: ${account}
name: Northwind
hosts: ["${ORIGIN}"]
${rest}`;

const blueprint = (key: string, head: string, nodes: string, account = "acme"): string => `blueprint: ${key}
account: ${account}
${head}
nodes:
${nodes.trim().replaceAll(/^/gm, "  ")}`;

const OPEN = `hosts: ["${ORIGIN}"]`;
const slot = (id: string): string => `credentials: { it: { strategy: ${id} } }`;
const out = (from: string): string => `- { id: out, type: output, refKey: out, from: ${from} }`;
const read = (path: string, records = "$"): string =>
  `- { id: read, type: http, credential: it, request: { url: ${path} }, records: ${records} }`;
const get = (path: string): string =>
  `- { id: read, type: http, request: { url: "${ORIGIN}${path}" }, records: items }`;
const send = (from: string): string => `- id: sent
  type: http
  for_each: ${from}
  throttle: { requests: 100, per: 1s }
  request:
    method: POST
    url: "${ORIGIN}/orders"
    headers: { Idempotency-Key: "{{ $token }}" }
    json: { number: "{{ number }}" }`;

const portal = (more: string): string =>
  strategy(
    "strat_portal",
    `fields:
  - { key: username, label: Username, type: text }
  - { key: password, label: Password, type: password }
login:
  type: http
  steps:
    - request:
        method: POST
        url: /login
        form: { username: "{{ $credential.username }}", password: "{{ $credential.password }}" }
      expect: { status: [302] }
  check: { request: { url: /me }, expect: { status: [200] } }
  cache: 7d
  lockout: { after: 1, cool_down: 12h }
concurrency: 5
${more}`,
  );

const invoices = (nodes: string): string =>
  blueprint("invoices", `${slot("strat_portal")}\nmetadata: [{ name: order }]`, nodes);

const ACCOUNTS: readonly string[] = [
  `account: acme
name: Acme
allowed_origins: [https://app.acme.example]
branding: { accent_color: "#336699", logo_url: "${LOGO}" }`,
  // Of its sessions and runs nothing is kept for longer than a day.
  "account: globex\nsession_lifetime: 1d\nretention: 1d",
];

const bearer = (id: string, account: string): string =>
  strategy(id, "fields: [{ key: token, type: password }]\nlogin: { type: bearer, token: token }", account);

const tokens = (id: string, account: string): string =>
  blueprint("tokens", slot(id), `${read("/bearer")}\n${out("read")}`, account);

const stock = (account: string): string =>
  blueprint(
    "stock",
    "",
    `- { id: file, type: input, refKey: file, accepts: file }
- { id: rows, type: parse, from: file, format: csv }
${out("rows")}`,
    account,
  );

const GLOBEX = [bearer("strat_globex", "globex"), tokens("strat_globex", "globex"), stock("globex")];

/** In force for three days: of some there are second versions now. */
export const EARLIER: readonly string[] = [
  ...ACCOUNTS,
  ...GLOBEX,
  portal(""),
  invoices(`${read("/invoices", "items")}\n${out("read")}`),
];

export const PRESENT: readonly string[] = [
  ...ACCOUNTS,
  ...GLOBEX,
  portal("description: Your login at Northwind"),
  invoices(
    `${read("/invoices", "items")}
- { id: short, type: map, from: read, fields: { number: number, total: total } }
${out("short")}`,
  ),
  bearer("strat_bearer", "acme"),
  tokens("strat_bearer", "acme"),
  stock("acme"),
  strategy(
    "strat_basic",
    "fields: [{ key: user, type: text }, { key: secret, type: password }]\nlogin: { type: basic, username: user, password: secret }",
  ),
  strategy(
    "strat_header",
    'fields: [{ key: key, type: password }]\nlogin: { type: headers, headers: { X-Key: "{{ $credential.key }}" } }',
  ),
  strategy(
    "strat_query",
    'fields: [{ key: key, type: password }]\nlogin: { type: query, params: { api_key: "{{ $credential.key }}" } }',
  ),
  blueprint(
    "slots",
    "credentials: { one: { strategy: strat_basic }, two: { strategy: strat_header }, three: { strategy: strat_query } }",
    `- { id: one, type: http, credential: one, request: { url: /basic }, records: $ }
- { id: two, type: http, credential: two, request: { url: /header }, records: $ }
- { id: three, type: http, credential: three, request: { url: /query }, records: $ }
- { id: out, type: output, refKey: out, handles: { one: { from: one }, two: { from: two }, three: { from: three } } }`,
  ),
  strategy(
    "strat_code",
    `fields:
  - { key: username, type: text }
  - { key: password, type: password }
  - { key: totp, type: totp_secret }
login:
  type: http
  steps:
    - request: { url: /code }
    - request:
        method: POST
        url: /code
        form: { username: "{{ $credential.username }}", password: "{{ $credential.password }}", code: "{{ $credential.totp.code }}" }
      expect: { status: [302] }`,
  ),
  blueprint("codes", slot("strat_code"), `${read("/invoices", "items")}\n${out("read")}`),
  strategy(
    "strat_oauth",
    `login:
  type: oauth2
  client_id: latchkey
  client_secret: { secret: NORTHWIND }
  authorization_url: "${ORIGIN}/oauth/authorize"
  token_url: "${ORIGIN}/oauth/token"`,
  ),
  blueprint("consented", slot("strat_oauth"), `${read("/oauth/items")}\n${out("read")}`),
  // What it gives, and what its steps keep, are objects.
  blueprint("archive", OPEN, `${get("/archive")}\n${out("read")}`),
  blueprint(
    "report",
    OPEN,
    `- { id: file, type: http, request: { url: "${ORIGIN}/report" }, save: file }
- { id: rows, type: parse, from: file, format: csv }
${out("rows")}`,
  ),
  blueprint(
    "approval",
    `${OPEN}\nmetadata: [{ name: order }]`,
    `- { id: given, type: input, refKey: rows, accepts: json }
- { id: rows, type: parse, from: given, format: json }
- { id: checked, type: validate, from: rows, schema: { properties: { n: { type: integer, minimum: 0 } } } }
- { id: gate, type: review, from: checked, title: Look at these, instructions: "For {{ $metadata.order }}", editable: true, timeout: 3d }
${send("gate")}
${out("sent")}`,
  ),
  blueprint(
    "orders",
    OPEN,
    `- { id: given, type: input, refKey: rows, accepts: json }
- { id: rows, type: parse, from: given, format: json }
${send("rows")}
${out("sent")}`,
  ),
  blueprint(
    "halfway",
    `${slot("strat_portal")}\n${OPEN}`,
    `- { id: first, type: http, credential: it, request: { url: /first }, records: items }
- { id: some, type: filter, from: first, where: 'number in ["first-1", "first-2"]' }
${send("some")}
- { id: second, type: http, credential: it, milestone: reading_second, request: { url: /second }, records: items }
- { id: out, type: output, refKey: out, from: second }
- { id: sent_out, type: output, refKey: sent, from: sent }
- { id: some_out, type: output, refKey: some, from: some }`,
  ),
  blueprint("missing", OPEN, `${get("/nothing")}\n${out("read")}`),
];
