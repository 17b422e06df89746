/** A strategy's `fields` and `login`, by login type; the first lines of the document are the same for all. */
export const LOGIN_TEMPLATES: Readonly<Record<string, string>> = {
  http: `fields:
  - { key: username, label: Username, type: text, autocomplete: username }
  - { key: password, label: Password, type: password }
login:
  type: http
  steps:
    # The page with the form, for its hidden token.
    - request: { method: GET, url: /login }
      extract: { csrf: { css: "input[name=_csrf]", attr: value } }
    - request:
        method: POST
        url: /login
        form:
          username: "{{ $credential.username }}"
          password: "{{ $credential.password }}"
          _csrf: "{{ $csrf }}"
      # What tells a right password from a wrong one.
      expect: { status: [302], not_text: Wrong username or password }
  # How a kept session is tested before it is used again.
  check: { request: { url: /api/me }, expect: { status: [200] } }
  cache: 15m
`,
  basic: `fields:
  - { key: username, label: Username, type: text, autocomplete: username }
  - { key: password, label: Password, type: password }
# Authorization: Basic, with the values of these two fields.
login:
  type: basic
  username: username
  password: password
  # How a test login asks whether the target takes it.
  check: { request: { url: /api/me } }
`,
  digest: `fields:
  - { key: username, label: Username, type: text, autocomplete: username }
  - { key: password, label: Password, type: password }
# Authorization: Digest, which proves the password and does not hold it.
login:
  type: digest
  username: username
  password: password
  # How a test login asks whether the target takes it.
  check: { request: { url: /api/me } }
`,
  bearer: `fields:
  - { key: token, label: API token, type: password, help: Made under Settings → API. }
# Authorization: Bearer, with the value of this field.
login:
  type: bearer
  token: token
  # How a test login asks whether the target takes it.
  check: { request: { url: /api/me } }
`,
  headers: `fields:
  - { key: key, label: API key, type: password }
login:
  type: headers
  headers: { X-Api-Key: "{{ $credential.key }}" }
  # How a test login asks whether the target takes it.
  check: { request: { url: /api/me } }
`,
  query: `fields:
  - { key: key, label: API key, type: password }
login:
  type: query
  params: { api_key: "{{ $credential.key }}" }
  # How a test login asks whether the target takes it.
  check: { request: { url: /api/me } }
`,
  mtls: `fields:
  - { key: certificate, label: Certificate, type: file, help: A .pem or .crt file }
  - { key: key, label: Private key, type: file }
  - { key: passphrase, label: Passphrase of the key, type: password, required: false }
# These are keys of the fields above.
login:
  type: mtls
  certificate: certificate
  key: key
  passphrase: passphrase
  # How a test login asks whether the target takes it.
  check: { request: { url: /api/me } }
`,
  oauth2: `# The end user signs in on the target's own pages: nothing is asked here, so there are no fields.
login:
  type: oauth2
  authorization_url: https://portal.example.com/oauth/authorize
  token_url: https://portal.example.com/oauth/token
  client_id: latchkey
  # Kept by: latchkey secrets set --account … PORTAL --for https://portal.example.com
  client_secret: { secret: PORTAL }
  scopes: [invoices.read]
`,
  none: `fields:
  - { key: note, label: Note, type: textarea }
# The fields are stored, and sent nowhere.
login: { type: none }
`,
};

/** The parameters of a template: its account, and where it sends requests. */
export interface TemplateNames {
  readonly name: string;
  readonly account: string;
  /** For a Blueprint: the strategy that its requests use to log in. */
  readonly strategy: string | null;
}

export function strategyTemplate(login: string, { name, account }: TemplateNames): string {
  const hosts =
    login === "none"
      ? ""
      : "# The only origins that may ever receive this credential.\nhosts: [https://portal.example.com]\n";
  return `strategy: ${name}
account: ${account}
name: ${title(name.replace(/^strat_/, ""))}
description: Shown on the form that asks for the credential
${hosts}${LOGIN_TEMPLATES[login] ?? ""}`;
}

/** The nodes that read a source and give records under the id \`rows\`, by where the data comes from. */
const SOURCE_NODES: Readonly<Record<string, (request: string, credential: string) => string>> = {
  http: (
    request,
    credential,
  ) => `  # A JSON API, page by page: \`next\` of one answer is \`cursor\` of the next request.
  - id: rows
    type: http${credential}
    milestone: reading
    request: { url: ${request}/api/items }
    paginate: { cursor: next, param: cursor, max_pages: 200 }
    records: items
`,
  csv: parsed("/export.csv", "format: csv"),
  ndjson: parsed("/export.ndjson", "format: ndjson"),
  xlsx: saved("/export.xlsx", "format: xlsx, sheet: 1"),
  html: parsed(
    "/items",
    'format: html, rows: table tbody tr, columns: { number: "td:nth-child(1)", total: "td:nth-child(2)" }',
  ),
  xml: parsed("/items.xml", "format: xml, rows: item, columns: { number: number, total: total }"),
  pdf: saved("/statement.pdf", 'format: pdf, rows: "(?P<number>INV-[0-9]+) +(?P<total>[0-9.]+)"'),
  file: () => `  # A CSV file that comes with the trigger.
  - { id: upload, type: input, refKey: upload, accepts: file, required: true }
  - { id: rows, type: parse, from: upload, format: csv }
`,
};

export const SOURCES: readonly string[] = Object.keys(SOURCE_NODES);

/** Text is parsed directly. */
function parsed(path: string, parse: string) {
  return (request: string, credential: string): string => `  # The answer becomes one record a row.
  - id: rows
    type: http${credential}
    milestone: reading
    request: { url: ${request}${path} }
    parse: { ${parse} }
`;
}

/** A binary file is saved first, and parsed by a node of its own. */
function saved(path: string, parse: string) {
  return (request: string, credential: string): string => `  - id: download
    type: http${credential}
    milestone: reading
    request: { url: ${request}${path} }
    save: file
  - { id: rows, type: parse, from: download, ${parse} }
`;
}

export function blueprintTemplate(from: string, { name, account, strategy }: TemplateNames): string {
  const isRequested = from !== "file";
  const head = !isRequested
    ? ""
    : strategy === null
      ? "# Origins that nodes without a credential may send requests to.\nhosts: [https://data.example.com]\n"
      : `credentials:\n  it: { strategy: ${strategy} }\n`;
  // With a credential a path is enough: it is resolved against the strategy's first host.
  const nodes = SOURCE_NODES[from]?.(
    strategy === null ? "https://data.example.com" : "",
    strategy === null ? "" : "\n    credential: it",
  );
  return `blueprint: ${name}
account: ${account}
name: ${title(name)}
description: What it does, for people
${head}timeout: 10m
nodes:
${nodes ?? ""}
  # The fields of your records: names to expressions (JSONata) over what was read.
  - id: lines
    type: map
    from: rows
    fields:
      number: number
      total: $number(total)

  - id: checked
    type: validate
    from: lines
    schema:
      type: object
      required: [number, total]
      properties: { total: { type: number, minimum: 0 } }

  - { id: out, type: output, refKey: items, from: checked }
`;
}

const title = (name: string): string => {
  const words = name.replaceAll(/[-_.]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
};
