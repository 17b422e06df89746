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
  browser: `fields:
  - { key: username, label: Email, type: email, autocomplete: username }
  - { key: password, label: Password, type: password }
# For a sign-in that is drawn by script. With a form, type http is faster and needs no browser.
login:
  type: browser
  steps:
    - goto: /login
    # Clicked away whenever it appears.
    - dismiss: { role: button, name: Accept all }
    - fill: { label: Email, with: "{{ $credential.username }}" }
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - click: { role: button, name: Sign in }
    # What tells a right password from a wrong one.
    - expect: { visible: { role: heading, name: Dashboard }, rejected: { text: Wrong email or password } }
  # What requests have besides the cookies, if the page keeps a token in its storage.
  # session: { headers: { Authorization: "Bearer {{ $storage.local.access_token }}" } }
  # How a kept session is tested before it is used again.
  check: { request: { url: /api/me } }
  cache: 8h
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

/** An id as a name: `supplier-invoices` is `Supplier invoices`. */
export const title = (name: string): string => {
  const words = name.replaceAll(/[-_.]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
};
