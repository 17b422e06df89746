import assert from "node:assert/strict";
import { test } from "node:test";
import { SUBSCRIPTIONS } from "#domain/webhook.ts";
import { check, problemsOf } from "./problems-of.ts";

const LOGO_HOW =
  "embed the image itself: `data:image/png;base64,…` with the output of `base64 -w0 logo.png` (PNG, JPEG or WebP, at most 32 KiB)";

const RULES: readonly (readonly [rule: string, text: string, problems: readonly string[]])[] = [
  [
    "the first key says the kind",
    "acount: acme\n",
    [
      "1:1 acount unknown kind of document `acount`; the first key says what a document is: `account`, `strategy` or `blueprint`; did you mean `account`?",
    ],
  ],
  [
    "the kind stands first",
    "name: Acme\naccount: acme\n",
    [
      "1:1 name unknown kind of document `name`; the first key says what a document is: `account`, `strategy` or `blueprint`; move `account` to the top",
    ],
  ],
  [
    "an empty document has no kind",
    "{}\n",
    ["1:1 is empty; the first key says what a document is: `account`, `strategy` or `blueprint`"],
  ],
  [
    "slugs have a format",
    "account: Acme\n",
    ["1:10 account must be a slug: lower-case letters, digits and `-`, at most 63 characters"],
  ],
  [
    "a logo on another server is refused: it would see every visitor",
    "account: acme\nbranding: { logo_url: https://cdn.acme.example/logo.png }\n",
    [
      `2:23 branding.logo_url an image on another server would let that server see every visitor; ${LOGO_HOW}`,
    ],
  ],
  [
    "a logo is a picture of a kind that is taken",
    "account: acme\nbranding: { logo_url: 'data:image/svg+xml;base64,PHN2Zy8+' }\n",
    [`2:23 branding.logo_url images of type \`image/svg+xml\` are not supported; ${LOGO_HOW}`],
  ],
  [
    "a logo is what it says",
    "account: acme\nbranding: { logo_url: 'data:image/png;base64,PHN2Zy8+' }\n",
    [`2:23 branding.logo_url claims to be \`image/png\` but is not; ${LOGO_HOW}`],
  ],
  [
    "a logo is small",
    `account: acme\nbranding: { logo_url: 'data:image/png;base64,${Buffer.alloc(33_000, 1).toString("base64")}' }\n`,
    ["2:23 branding.logo_url has 33 KiB; the maximum is 32 KiB"],
  ],
  [
    "an accent colour has six digits, in quotes: without them it is a comment",
    "account: acme\nbranding: { accent_color: blue }\n",
    ['2:27 branding.accent_color must be a colour like `"#3355ff"`, in quotes'],
  ],
  [
    "help is on https, or by email",
    "account: acme\nbranding: { support_url: http://acme.example }\n",
    [
      "2:26 branding.support_url must be a web address that begins with https://, or mailto: and an email address",
    ],
  ],
  [
    "a script is no place for help, and branding has no other keys",
    "account: acme\nbranding: { support_url: 'javascript:alert(1)', color: red }\n",
    [
      "2:26 branding.support_url must be a web address that begins with https://, or mailto: and an email address",
      "2:49 branding.color unknown key `color`; known: `name`, `logo_url`, `accent_color`, `support_url`",
    ],
  ],
  [
    "a whole branding is taken",
    `account: acme\nbranding: { name: Acme, logo_url: 'data:image/png;base64,iVBORw0KGgo=', accent_color: "#3355ff", support_url: mailto:help@acme.example }\n`,
    [],
  ],
  ["a slug is text", "account: 42\n", ["1:10 account must be text; put `42` in quotes"]],
  [
    "origins have a scheme",
    "account: acme\nallowed_origins: [app.example]\n",
    [
      "2:19 allowed_origins[0] `app.example` is not an origin; write an origin like `https://app.example.com` or `http://localhost:3000`",
    ],
  ],
  [
    "origins are http or https",
    "account: acme\nallowed_origins: [ftp://app.example]\n",
    [
      "2:19 allowed_origins[0] must begin with https:// or http://; write an origin like `https://app.example.com` or `http://localhost:3000`",
    ],
  ],
  [
    "origins have no path",
    "account: acme\nallowed_origins: [https://app.example/a?b]\n",
    ["2:19 allowed_origins[0] must be scheme, host and port only; write `https://app.example`"],
  ],
  [
    "origins are canonical",
    "account: acme\nallowed_origins: [https://APP.example:443]\n",
    ["2:19 allowed_origins[0] must be scheme, host and port only; write `https://app.example`"],
  ],
  [
    "origins have no wildcard",
    'account: acme\nallowed_origins: ["https://*.app.example"]\n',
    ["2:19 allowed_origins[0] wildcards are not supported; list every origin"],
  ],
  [
    "origins have no user",
    "account: acme\nallowed_origins: [https://me@app.example]\n",
    ["2:19 allowed_origins[0] must not contain a user name or a password; remove them"],
  ],
  [
    "origins have no dot at the end",
    "account: acme\nallowed_origins: [https://app.example.]\n",
    ["2:19 allowed_origins[0] the host must not end with a dot; remove it"],
  ],
  [
    "origins stand there once",
    "account: acme\nallowed_origins: [https://a.example, https://a.example]\n",
    ["2:38 allowed_origins[1] is listed twice; remove one"],
  ],
  [
    "a list is a list",
    "account: acme\nallowed_origins: https://a.example\n",
    ["2:18 allowed_origins must be a list, not text"],
  ],
  [
    "durations",
    "account: acme\nsession_lifetime: 0\nretention: 5 days\n",
    [
      "2:19 session_lifetime must be longer than 0",
      "3:12 retention must be a duration like `500ms`, `30s`, `10m`, `2h` or `7d`",
    ],
  ],
  ["concurrency is at least 1", "account: acme\nconcurrency: 0\n", ["2:14 concurrency must be at least 1"]],
  [
    "concurrency is a whole number",
    'account: acme\nconcurrency: "5"\n',
    ["2:14 concurrency must be a whole number; remove the quotes"],
  ],
  [
    "an account can't be retired",
    "account: acme\nretired: true\n",
    [
      "2:1 retired unknown key `retired`; known: `account`, `name`, `allowed_origins`, `embed_origins`, `session_lifetime`, `retention`, `concurrency`, `rate_limit`, `review_step_up`, `two_person`, `branding`, `throttle`, `webhooks`",
    ],
  ],
  [
    "an endpoint of webhooks has a URL of its own, and events that exist",
    "account: acme\nwebhooks:\n  - { url: https://a.example/x, events: [run.done] }\n  - { url: https://a.example/x }\n  - { url: nowhere }\n",
    [
      `3:42 webhooks[0].events[0] must be one of ${SUBSCRIPTIONS.map((each) => `\`${each}\``).join(", ")}`,
      "4:12 webhooks[1].url is listed twice; remove one",
      "5:12 webhooks[2].url must be absolute, such as https://example.com/webhooks",
    ],
  ],
  [
    "a planned key of an endpoint is refused by name",
    "account: acme\nwebhooks: [{ url: https://a.example/x, secret_env: X }]\n",
    [
      "2:40 webhooks[0].secret_env `secret_env` is not built yet; `latchkey webhooks rotate` makes the secret and shows it once",
    ],
  ],
];

for (const [rule, text, problems] of RULES) {
  test(`apply checks: ${rule}`, () => assert.deepEqual(problemsOf(text), problems));
}

test("ids are unique in the set, within their account", () => {
  const strategy = (account: string) =>
    `strategy: strat_a\naccount: ${account}\nfields: [{ key: k, type: text }]\nlogin: { type: none }\n`;
  const files = [
    { file: "a", text: `account: a\n---\naccount: b\n---\n${strategy("a")}` },
    { file: "b", text: `${strategy("b")}---\n${strategy("a")}---\naccount: b\n` },
  ];
  assert.deepEqual(check(files).problems, [
    "b:6:11 strategy the strategy `strat_a` is defined at a:5 already; remove one of the two",
    "b:11:10 account the account `b` is defined at a:3 already; remove one of the two",
  ]);
});

test("problems are sorted by file and line, and a wrong document does not hide the others", () => {
  const { checked, problems } = check([
    { file: "b", text: "account: b\nnam: B\n---\naccount: good\n" },
    { file: "a", text: "account: a\nretention: x\nnam: A\n---\nx: [\n" },
  ]);
  assert.deepEqual(
    problems.map((problem) => problem.split(" ")[0]),
    ["a:2:12", "a:3:1", "a:6:1", "b:2:1"],
  );
  assert.deepEqual(
    checked.map(({ id }) => id),
    ["good"],
  );
});

test("keys that every object inherits are unknown keys like others", () => {
  assert.deepEqual(
    problemsOf("account: acme\nconstructor: 1\ntoString: 2\nhasOwnProperty: 3\n").map(
      (problem) => problem.split(";")[0],
    ),
    [
      "2:1 constructor unknown key `constructor`",
      "3:1 toString unknown key `toString`",
      "4:1 hasOwnProperty unknown key `hasOwnProperty`",
    ],
  );
});
