import assert from "node:assert/strict";
import { test } from "node:test";
import type { KnownConfig } from "#actions/config/check-config.ts";
import { problemsOf } from "./problems-of.ts";

/** A strategy with nothing wrong. Every test changes one thing of it. */
const STRATEGY = `strategy: strat_portal
account: acme
hosts: [https://portal.example]
fields:
  - { key: username, label: Username, type: text, min_length: 2, max_length: 20 }
  - { key: totp, label: Secret, type: totp_secret, required: false }
login:
  type: http
  steps:
    - request: { url: /login }
      extract: { csrf: { css: input, attr: value } }
    - request:
        method: POST
        url: https://portal.example/login
        form: { name: "{{ $credential.username }}", _csrf: "{{ $csrf }}" }
      expect: { status: [302] }
    - when: $exists($credential.totp)
      request: { method: POST, url: /otp, form: { code: "{{ $credential.totp.code }}" } }
  check: { request: { url: /me } }
  cache: 15m
concurrency: 5
`;

const known: KnownConfig = { accounts: new Set(["acme"]), strategies: new Map(), secrets: new Map() };

function changed(from: string, to: string): string {
  assert.equal(STRATEGY.split(from).length, 2, `"${from}" stands once in the strategy`);
  return STRATEGY.replace(from, () => to);
}

test("a strategy with nothing wrong is accepted", () => assert.deepEqual(problemsOf(STRATEGY, known), []));

const RULES: readonly (readonly [rule: string, from: string, to: string, problems: readonly string[]])[] = [
  [
    "unknown keys name the nearest one",
    "fields:",
    "feilds:",
    [
      "1:1 the key `fields` is missing (the fields of the hosted form); add it",
      "4:1 feilds unknown key `feilds`; did you mean `fields`?",
    ],
  ],
  [
    "ids begin with strat_",
    "strategy: strat_portal",
    "strategy: portal",
    ["1:11 strategy must be an id that starts with `strat_`, then letters, digits, `_` and `-`"],
  ],
  [
    "the kind stands first",
    "strategy: strat_portal\naccount: acme",
    "account: acme\nstrategy: strat_portal",
    [
      "2:1 strategy the first key says what a document is: `account`, `strategy` or `blueprint`; move `strategy` to the top",
    ],
  ],
  [
    "a logo on another server is refused: it would see every visitor",
    "fields:",
    "logo_url: https://cdn.example/logo.png\nfields:",
    [
      "4:11 logo_url an image on another server would let that server see every visitor; embed the image itself: `data:image/png;base64,…` with the output of `base64 -w0 logo.png` (PNG, JPEG or WebP, at most 32 KiB)",
    ],
  ],
  ["the account is required", "account: acme\n", "", ["1:1 the key `account` is missing; add it"]],
  [
    "the account exists",
    "account: acme",
    "account: acmee",
    ["2:10 account there is no account `acmee`; did you mean `acme`?"],
  ],
  [
    "hosts are required",
    "hosts: [https://portal.example]\n",
    "",
    ["1:1 the key `hosts` is missing; list the origins that may receive the credential"],
  ],
  [
    "hosts are not empty",
    "hosts: [https://portal.example]",
    "hosts: []",
    ["3:8 hosts must not be empty; list the origins that may receive the credential"],
  ],
  [
    "hosts are origins",
    "hosts: [https://portal.example]",
    "hosts: [portal.example]",
    [
      "3:9 hosts[0] `portal.example` is not an origin; write an origin like `https://app.example.com` or `http://localhost:3000`",
    ],
  ],
  // Fields
  [
    "field keys are unique",
    "key: totp,",
    "key: username,",
    [
      "6:12 fields[1].key another field has the key `username` already; choose another one",
      "17:13 login.steps[2].when the strategy has no field `totp`; it has: `username`",
      "18:57 login.steps[2].request.form.code the strategy has no field `totp`; it has: `username`",
    ],
  ],
  [
    "field keys don't begin with _",
    "key: totp,",
    "key: _totp,",
    [
      "6:12 fields[1].key must be a name of lower-case letters, digits and `_` that begins with a letter",
      "17:13 login.steps[2].when the strategy has no field `totp`; did you mean `_totp`?",
      "18:57 login.steps[2].request.form.code the strategy has no field `totp`; did you mean `_totp`?",
    ],
  ],
  [
    "keys that say nothing of a field's type",
    "type: text, min_length: 2, max_length: 20",
    "type: checkbox, min_length: 2, placeholder: x",
    [
      "5:55 fields[0].min_length a field of type `checkbox` has no `min_length`; remove it",
      "5:70 fields[0].placeholder a field of type `checkbox` has no `placeholder`; remove it",
    ],
  ],
  [
    "a select has options",
    "type: text, min_length: 2, max_length: 20",
    "type: select",
    ["5:5 fields[0] a `select` needs its choices; add `options: [one, another]`"],
  ],
  [
    "the options of a select are different",
    "type: text, min_length: 2, max_length: 20",
    "type: select, options: [a, { value: a, label: A }, { lable: b }]",
    [
      "5:66 fields[0].options[1] the choice `a` is listed twice; remove one",
      "5:90 fields[0].options[2] the key `value` is missing; add it",
      "5:92 fields[0].options[2].lable unknown key `lable`; did you mean `label`?",
    ],
  ],
  [
    "only a select has options",
    "max_length: 20",
    "options: [a, b]",
    ["5:66 fields[0].options only a field of type `select` has `options`; remove them, or change the type"],
  ],
  [
    "unknown field types",
    "type: text,",
    "type: txt,",
    [
      "5:45 fields[0].type must be one of `text`, `email`, `url`, `password`, `textarea`, `select`, `checkbox`, `totp_secret`, `headers`, `file`; did you mean `text`?",
    ],
  ],
  ["field types are required", "type: text, ", "", ["5:5 fields[0] the key `type` is missing; add it"]],
  [
    "keys of a field",
    "label: Secret",
    "lable: Secret",
    ["6:18 fields[1].lable unknown key `lable`; did you mean `label`?"],
  ],
  [
    "patterns are RE2's",
    "min_length: 2",
    'pattern: "(?=a)"',
    [
      "5:60 fields[0].pattern is not an RE2 regular expression (error parsing regexp: invalid or unsupported Perl syntax: `(?=`); look-around and back references are not supported",
    ],
  ],
  [
    "lengths fit",
    "min_length: 2",
    "min_length: 30",
    ["5:63 fields[0].min_length is more than `max_length` (20); no value could fit"],
  ],
  [
    "lengths are numbers",
    "min_length: 2,",
    "min_length: -1,",
    ["5:63 fields[0].min_length must be at least 0"],
  ],
  // Login
  [
    "the login is required",
    STRATEGY.slice(STRATEGY.indexOf("login:"), STRATEGY.indexOf("concurrency")),
    "",
    ["1:1 the key `login` is missing (how runs log in, e.g. `{ type: none }`); add it"],
  ],
  [
    "the login has a type",
    "  type: http\n",
    "",
    [
      "8:3 login the key `type` is missing; login types: `basic`, `bearer`, `browser`, `digest`, `headers`, `http`, `mtls`, `none`, `oauth2`, `query`",
    ],
  ],
  [
    "unknown login types name the nearest one",
    "  type: http",
    "  type: htpp",
    ["8:9 login.type unknown login type `htpp`; did you mean `http`?"],
  ],
  [
    "keys of the login name the nearest one",
    "  steps:",
    "  stesp:",
    [
      "8:3 login the key `steps` is missing (The steps, in order); add it",
      "9:3 login.stesp unknown key `stesp`; did you mean `steps`?",
    ],
  ],
  [
    "cache is a duration",
    "cache: 15m",
    "cache: 15",
    ["20:10 login.cache must be a duration like `500ms`, `30s`, `10m`, `2h` or `7d`"],
  ],
  [
    "what a step expects",
    "expect: { status: [302] }",
    "expect: { status: 302 }",
    ["16:25 login.steps[1].expect.status must be a list, not a number"],
  ],
  [
    "what its type checks",
    "attr: value",
    "json: a",
    [
      "11:24 login.steps[0].extract.csrf an extract must have exactly one of `css`, `json`, `regex`, `header`, `cookie`",
    ],
  ],
  [
    "absolute URLs stay in the hosts",
    "https://portal.example/login",
    "https://evil.example/login",
    [
      "14:14 login.steps[1].request.url `https://evil.example` is not among the `hosts` of this strategy; they are `https://portal.example`; write a path like `/api/items`, or add the origin there",
    ],
  ],
  [
    "a URL without a scheme can't escape",
    "url: /me",
    "url: //evil.example/me",
    ["19:28 login.check.request.url a URL must be relative (`/path`) or begin with https://"],
  ],
  [
    "a backslash can't escape",
    "url: /me",
    "url: /\\evil.example/me",
    ["19:28 login.check.request.url a URL must not contain spaces, line breaks or backslashes"],
  ],
  [
    "extracts don't take reserved names",
    "{ csrf: { css",
    "{ credential: { css",
    [
      "11:18 login.steps[0].extract.credential `credential` is a reserved variable; choose another name",
      "15:60 login.steps[1].request.form._csrf unknown variable `$csrf`; here there are: `$credential`",
    ],
  ],
  // Expressions
  [
    "unknown fields",
    "$credential.username",
    "$credential.usrname",
    ["15:23 login.steps[1].request.form.name the strategy has no field `usrname`; did you mean `username`?"],
  ],
  [
    "a totp_secret has only .code",
    "$credential.totp.code",
    "$credential.totp.secret",
    ["18:57 login.steps[2].request.form.code a totp_secret has only `.code`; write `$credential.totp.code`"],
  ],
  [
    "only a totp_secret has .code",
    "$credential.totp.code",
    "$credential.username.code",
    [
      "18:57 login.steps[2].request.form.code the field `username` is text and has no `code`; only a totp_secret has `.code`",
    ],
  ],
  [
    "variables are extracted before they are used",
    "{{ $csrf }}",
    "{{ $crsf }}",
    ["15:60 login.steps[1].request.form._csrf unknown variable `$crsf`; did you mean `$csrf`?"],
  ],
  [
    "… by an earlier step",
    "url: /login }",
    'url: "/login?{{ $csrf }}" }',
    ["10:23 login.steps[0].request.url unknown variable `$csrf`; here there are: `$credential`"],
  ],
  [
    "… and not in the check, which runs without the steps",
    "url: /me",
    'url: "/me/{{ $csrf }}"',
    ["19:28 login.check.request.url unknown variable `$csrf`; here there are: `$credential`"],
  ],
  [
    "a Blueprint's variables don't exist in a login",
    "{{ $csrf }}",
    "{{ $inputs.csrf }}",
    [
      "15:60 login.steps[1].request.form._csrf `$inputs` does not exist in a login; there are `$credential` and what earlier steps extract",
    ],
  ],
  [
    "expressions compile",
    "$exists($credential.totp)",
    "$exists($credential.totp",
    [
      '17:13 login.steps[2].when the expression doesn\'t compile: Expected ")" before end of expression (`$exists($credential.totp`)',
    ],
  ],
  ["concurrency is at least 1", "concurrency: 5", "concurrency: 0", ["21:14 concurrency must be at least 1"]],
];

for (const [rule, from, to, problems] of RULES) {
  test(`apply checks: ${rule}`, () => assert.deepEqual(problemsOf(changed(from, to), known), problems));
}

test("a credential that is only stored needs no hosts", () => {
  const text =
    "strategy: strat_note\naccount: acme\nfields: [{ key: note, type: text }]\nlogin: { type: none }\n";
  assert.deepEqual(problemsOf(text, known), []);
});

test("field keys that a login names exist", () => {
  const text = changed(
    STRATEGY.slice(STRATEGY.indexOf("  type: http"), STRATEGY.indexOf("concurrency")),
    "  { type: basic, username: usernam, password: totp }\n",
  );
  assert.deepEqual(problemsOf(text, known), [
    "8:28 login.username the strategy has no field `usernam`; did you mean `username`?",
  ]);
});

test("a node may use a strategy of the same set, and a wrong host of it does not accuse the node", () => {
  const blueprint = (url: string) => `---
blueprint: b
account: acme
credentials: { portal: { strategy: strat_portal } }
nodes:
  - { id: list, type: http, credential: portal, request: { url: "${url}" }, records: items }
  - { id: out, type: output, refKey: items, from: list }
`;
  assert.deepEqual(problemsOf(STRATEGY + blueprint("https://portal.example/api"), known), []);
  assert.deepEqual(problemsOf(STRATEGY + blueprint("https://other.example/api"), known), [
    "27:65 nodes[0].request.url `https://other.example` is not among the `hosts` of the strategy `strat_portal`; they are `https://portal.example`; write a path like `/api/items`, or add the origin there",
  ]);
  assert.deepEqual(
    problemsOf(
      changed("[https://portal.example]", "[portal]") + blueprint("https://portal.example/api"),
      known,
    ),
    [
      "3:9 hosts[0] `portal` is not an origin; write an origin like `https://app.example.com` or `http://localhost:3000`",
    ],
  );
});

const translated = (text: string): readonly string[] =>
  problemsOf(STRATEGY.replace("label: Username", `label: ${text}`), known);

test("a text for end users is one text, or one in each of some of the ten languages", () => {
  assert.deepEqual(translated("{ en: User, de: Benutzer, ar: المستخدم }"), []);
  assert.deepEqual(translated("{ de: Benutzer }"), []);
  assert.deepEqual(translated("{ en: User, sv: Användare }"), [
    "5:41 fields[0].label.sv unknown key `sv`; known: `en`, `de`, `fr`, `es`, `it`, `pt`, `nl`, `pl`, `ja`, `ar`",
  ]);
  assert.deepEqual(translated("{}"), ["5:29 fields[0].label must not be empty; give at least one key"]);
  assert.deepEqual(translated("{ de: '' }"), ["5:35 fields[0].label.de must not be empty"]);
  assert.deepEqual(translated("[User]"), [
    "5:29 fields[0].label must be text or keys with values, not a list",
  ]);
  assert.deepEqual(problemsOf(STRATEGY.replace("hosts:", "name: { fr: Portail }\nhosts:"), known), []);
});
