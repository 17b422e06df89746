// docs/browser.md: steps of logins and nodes are checked in one way, and mistakes are named where they stand.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { nearestTo, namesOf } from "#answers/browser/nearest-names.ts";
import { matchesUrl } from "#answers/browser/condition.ts";
import { configSchema } from "#actions/config/config-schema.ts";
import { stepKinds } from "#answers/steps/step-kinds.ts";
import { check, problemsOf } from "./problems-of.ts";

const DOCS = join(import.meta.dirname, "../../docs");
const page = readFileSync(join(DOCS, "browser.md"), "utf8");
const [LOGIN = "", NODE = ""] = [...page.matchAll(/```yaml\n(.*?)```/gs)].map((match) => match[1] ?? "");
const ACCOUNT = "account: acme\n---\n";

/** The strategy of docs/browser.md with other steps, one a line; problems begin with the step's path. */
function loginProblems(...steps: readonly string[]): readonly string[] {
  const before = LOGIN.slice(0, LOGIN.indexOf("  steps:\n") + "  steps:\n".length);
  const text = `${ACCOUNT}${before}${steps.map((step) => `    - ${step}\n`).join("")}`;
  const line = text.slice(0, text.indexOf("  steps:\n")).split("\n").length;
  return problemsOf(text).map((problem) =>
    problem.replace(/^(\d+):(\d+) /, (_all, at: string, column: string) => `${Number(at) - line}:${column} `),
  );
}

function nodeProblems(steps: readonly string[], more = ""): readonly string[] {
  const text = `${ACCOUNT}${LOGIN}---
blueprint: b
account: acme
hosts: [https://open.example]
credentials: { portal: { strategy: strat_portal } }
nodes:
  - { id: year, type: input, refKey: year }
  - { id: out, type: output, refKey: out, from: ${steps.join().includes("download") ? "parsed" : "b"} }
  - id: b
    type: browser
    credential: portal
${more}    steps:
${steps.map((step) => `      - ${step}\n`).join("")}${steps.join().includes("download") ? PARSED : ""}`;
  return problemsOf(text).map((problem) => problem.replace(/^\d+:\d+ nodes\[2\]\.?/, ""));
}

/** Reads the file of a node with a `download`. */
const PARSED = "  - { id: parsed, type: parse, format: csv, from: b }\n";

const READ = "extract: { fields: { a: .a } }";

test("the documents of docs/browser.md are accepted, and so is the example of each step's page", () => {
  assert.deepEqual(problemsOf(`${ACCOUNT}${LOGIN}---\n${NODE}`), []);
  const pages = readdirSync(join(DOCS, "steps")).toSorted();
  assert.deepEqual(pages, stepKinds.map(({ kind }) => `${kind}.md`).toSorted());
  for (const { kind, example, only } of stepKinds) {
    assert.ok(page.includes(`(steps/${kind}.md)`), kind);
    const lines = example.replace(/^- /, "").split("\n");
    const inLogin = only !== "node" && (example.includes("$credential") || example.includes("rejected"));
    const more = kind === "commit" ? "    effect: write\n" : "";
    if (inLogin) assert.deepEqual(loginProblems(lines.join("\n    ")), [], kind);
    else {
      assert.deepEqual(
        nodeProblems([lines.join("\n      "), READ].slice(0, /extract|download/.test(example) ? 1 : 2), more),
        [],
        kind,
      );
      if (only === undefined && !/extract|inputs/.test(example))
        assert.deepEqual(loginProblems(lines.join("\n    ")), [], kind);
    }
  }
});

test("a check is a request or steps with an `expect`, and its steps are checked like all others", () => {
  const problems = (given: string): readonly string[] =>
    problemsOf(ACCOUNT + LOGIN.replace(/^ {2}check: .*$/m, `  check: ${given}`)).map((problem) =>
      problem.replace(/^\d+:\d+ /, ""),
    );
  const shown = "{ expect: { visible: { role: heading, name: Account } } }";
  assert.deepEqual(problems(`{ steps: [{ goto: /account }, ${shown}] }`), []);
  for (const [given, problem] of [
    ["{}", "login.check needs `request` or `steps`"],
    [
      `{ request: { url: /me }, steps: [${shown}] }`,
      "login.check.request can't stand beside `steps`; a check is a request or steps",
    ],
    [
      `{ expect: { status: [200] }, steps: [${shown}] }`,
      "login.check.expect can't stand beside `steps`; a check is a request or steps",
    ],
    [
      "{ steps: [{ goto: /account }] }",
      "login.check.steps must have an `expect`, which says what only a session shows",
    ],
    [
      `{ steps: [{ goto: "https://elsewhere.example/" }, ${shown}] }`,
      "login.check.steps[0].goto `https://elsewhere.example` is not among the `hosts` of this strategy; they are `https://portal.example.com`; write a path like `/api/items`, or add the origin there",
    ],
    [
      `{ steps: [{ clik: {} }, ${shown}] }`,
      "login.check.steps[0].clik unknown key `clik`; did you mean `click`?",
    ],
  ] as const)
    assert.deepEqual(problems(given), [problem], given);
});

const LOGIN_MISTAKES: readonly (readonly [step: string, problem: string])[] = [
  ["clik: { role: button }", "1:7 login.steps[0].clik unknown key `clik`; did you mean `click`?"],
  [
    "extract: { fields: { a: b } }",
    "1:7 login.steps[0].extract unknown key `extract`; known: `goto`, `fill`, `type`, `click`, `check`, `uncheck`, `select`, `press`, `hover`, `wait`, `expect`, `dismiss`, `dialog`, `when`, `repeat`, `each`, `popup`, `back`, `reload`, `steps`, `timeout`",
  ],
  [
    "click: { double: true }",
    "1:14 login.steps[0].click a locator needs one of `role`, `label`, `placeholder`, `text`, `alt`, `title`, `test_id`, `css`; add one",
  ],
  ["click: { label: a, naem: b }", "1:26 login.steps[0].click.naem unknown key `naem`; did you mean `name`?"],
  ["click: { css: 'a[' }", "1:21 login.steps[0].click.css `a[` is not a CSS selector"],
  ["click: { css: 'a >> text=b' }", "1:21 login.steps[0].click.css `a >> text=b` is not a CSS selector"],
  [
    "click: { text: a, in: { role: form, level: 2 } }",
    "1:43 login.steps[0].click.in.level `level` needs `role: heading`",
  ],
  [
    "click: { text: a, frame: { css: iframe, nmae: x } }",
    "1:47 login.steps[0].click.frame.nmae unknown key `nmae`; did you mean `name`?",
  ],
  [
    "{ goto: /a, click: { text: b } }",
    "1:19 login.steps[0].click a step does one thing; make `click` a step of its own",
  ],
  [
    "goto: https://elsewhere.example/",
    "1:13 login.steps[0].goto `https://elsewhere.example` is not among the `hosts` of this strategy; they are `https://portal.example.com`; write a path like `/api/items`, or add the origin there",
  ],
  [
    "goto: 'file:///etc/passwd'",
    "1:13 login.steps[0].goto a URL must be relative (`/path`) or begin with https://, not with file:",
  ],
  [
    "wait: { for: 11s }",
    "1:20 login.steps[0].wait.for a pause is at most `10s`; wait for a state of the page, such as `visible`",
  ],
  [
    "wait: {}",
    "1:13 login.steps[0].wait needs a condition: one of `visible`, `hidden`, `enabled`, `disabled`, `url`, `text`; add one",
  ],
  [
    "press: { key: Entre }",
    "1:21 login.steps[0].press.key must be a key like `Enter`, `Escape`, `Tab`, `ArrowDown`, `F5`, `a` or `Control+a`",
  ],
  ["fill: { label: Email }", "1:13 login.steps[0].fill the key `with` is missing (The value); add it"],
  [
    'fill: { label: "{{ $credential.password }}", with: x }',
    "1:22 login.steps[0].fill.label the secret field `password` may only be used in `with` of `fill` and `type`, not in a locator, a URL or an option",
  ],
  [
    'goto: "/login?p={{ $credential.totp.code }}"',
    "1:13 login.steps[0].goto the secret field `totp` may only be used in `with` of `fill` and `type`, not in a locator, a URL or an option",
  ],
  [
    'fill: { label: Email, with: "{{ $credential.pasword }}" }',
    "1:35 login.steps[0].fill.with the strategy has no field `pasword`; did you mean `password`?",
  ],
  [
    'fill: { label: Email, with: "{{ $storage.local.a }}" }',
    "1:35 login.steps[0].fill.with unknown variable `$storage`; here there are: `$credential`",
  ],
  ["when: { visible: { text: a } }", "1:7 login.steps[0].when `when` needs `steps` beside it; add them"],
  [
    "{ click: { text: a }, steps: [{ back: true }] }",
    "1:29 login.steps[0].steps only `when` has `steps` beside it; remove them",
  ],
  [
    "{ when: { visible: { text: a } }, steps: [{ clik: { text: a } }] }",
    "1:51 login.steps[0].steps[0].clik unknown key `clik`; did you mean `click`?",
  ],
  ["{ click: { text: a }, timeout: 6m }", "1:38 login.steps[0].timeout must be more than 0 and at most `5m`"],
  [
    "dialog: { answer: dismiss, text: a }",
    "1:34 login.steps[0].dialog.text a dismissed dialog has no text; remove it",
  ],
  ["back: false", "1:13 login.steps[0].back must be `true`"],
];

test("mistakes in a login's steps are named with their line, column and remedy", () => {
  assert.deepEqual(
    LOGIN_MISTAKES.map(([step]) => [step, loginProblems(step).join("\n")]),
    LOGIN_MISTAKES,
  );
  assert.match(
    loginProblems("click: { role: buton, name: x }").join("\n"),
    /^1:22 login\.steps\[0\]\.click\.role must be one of .*; did you mean `button`\?$/,
  );
});

const NODE_MISTAKES: readonly (readonly [steps: readonly string[], problem: string])[] = [
  [["goto: /a"], "steps the steps read nothing; add an `extract`"],
  [
    ['fill: { label: a, with: "{{ $credential.password }}" }', READ],
    "steps[0].fill.with secrets are never in scope in a Blueprint",
  ],
  [
    ['goto: "/{{ $inputs.yaer }}"', READ],
    "steps[0].goto no INPUT has the refKey `yaer`; did you mean `year`?",
  ],
  [
    ["expect: { visible: { text: b }, rejected: { text: a } }", READ],
    "steps[0].expect.rejected `rejected` needs `effect: write`; remove it",
  ],
  [
    [READ, "extract: { rows: { css: tr }, columns: { a: td } }"],
    "steps[0].extract a node reads either rows or single `fields`; put one of them into a node of its own",
  ],
  [["extract: { rows: { css: tr } }"], "steps[0].extract `rows` need `columns`; add them"],
  [
    ["extract: { rows: { css: tr }, columns: { a: 'td[' } }"],
    "steps[0].extract.columns.a `td[` is not a CSS selector",
  ],
  [
    ["repeat: { steps: [{ extract: { rows: { css: tr }, columns: { a: td } } }], while: {} }"],
    "steps[0].repeat.while needs a condition",
  ],
  [
    ["each: { rows: { css: tr }, steps: [{ upload: { css: a, file: nobody } }] }", READ],
    "steps[0].each.steps[0].upload.file there is no node `nobody`",
  ],
  [["download: { click: { text: a } }", READ], "steps[1].extract a node with a `download` gives a file"],
  [
    ["download: { click: { text: a } }", "reload: true"],
    "steps[0].download must be the last of the node's own",
  ],
  [
    ["when: { visible: { text: a } }\n        steps: [{ download: { click: { text: a } } }]"],
    "steps[0].steps[0].download must be the last of the node's own steps",
  ],
];

test("mistakes in a node's steps, and what is not built, by name", () => {
  for (const [steps, problem] of NODE_MISTAKES) {
    const [first = "", ...more] = nodeProblems(steps);
    assert.ok(first.startsWith(problem), `${steps.join()}: ${first}`);
    assert.deepEqual(more, [], steps.join());
  }
  for (const [key, remedy] of [
    ["for_each: year", "repeat steps with `each` or `repeat`, or trigger a run for each record"],
    ["throttle: {}", "LATCHKEY_BROWSERS limits how many browsers a worker runs"],
  ] as const)
    assert.ok(nodeProblems([READ], `    ${key}\n`).join().includes(`is not built yet; ${remedy}`), key);
  assert.match(
    nodeProblems(["goto: https://elsewhere.example/x", READ]).join(),
    /^steps\[0\]\.goto `https:\/\/elsewhere\.example` is not among the `hosts` of the strategy `strat_portal`/,
  );
});

test("a node that writes commits once, before a step of its own; what belongs to a write needs one", () => {
  const write = "    effect: write\n";
  const click = "click: { role: button, name: Send }";
  const rejected = "expect: { visible: { text: Done }, rejected: { text: No } }";
  const lookUp = (steps: string, found = "{ text: A }") =>
    `${write}    verify: { steps: [${steps}], found: ${found}, missing: { text: B } }\n`;
  const cases: readonly (readonly [steps: readonly string[], more: string, problem: string])[] = [
    [[click], "", "steps the steps read nothing; add an `extract` or a `download`, or set `effect: write`"],
    [
      [READ, "commit: true", click],
      "",
      "steps[1].commit `commit` needs `effect: write`; add it, or remove the step",
    ],
    [
      ["commit: true", click, "commit: true", click],
      write,
      "steps[2].commit a node commits once; use a node for each write",
    ],
    [
      [click, "commit: true"],
      write,
      "steps[1].commit no step follows that could write; put it before the step that submits",
    ],
    [
      ["when: { visible: { text: A } }\n        steps: [{ commit: true }, { reload: true }]"],
      write,
      "steps[0].steps[0].commit must be one of the node's own steps, not inside of another step; move it out",
    ],
    [["download: { click: { text: a } }"], write, "steps[0].download a node that writes gives no file"],
    [
      [READ],
      "    on_unknown: fail\n",
      "on_unknown `on_unknown` needs `effect: write`; add it, or remove the key",
    ],
    [[click], lookUp("{ commit: true }"), "verify.steps[0].commit a look-up only reads; remove it"],
    [[click], lookUp("{ goto: /list }", "{}"), "verify.found needs a condition"],
    [
      [click],
      lookUp("{ goto: https://elsewhere.example/ }"),
      "verify.steps[0].goto `https://elsewhere.example` is not among",
    ],
    [["commit: false", click], write, "steps[0].commit must be"],
  ];
  for (const [steps, more, problem] of cases) {
    const [first = "", ...others] = nodeProblems(steps, more);
    assert.ok(first.startsWith(problem), `${steps.join()}: ${first}`);
    assert.deepEqual(others, [], steps.join());
  }
  assert.deepEqual(nodeProblems([click, "commit: true", click, rejected], lookUp("{ goto: /list }")), []);
});

test("the origins that a login's pages load from are origins, and receive the credential", () => {
  const text = `${ACCOUNT}${LOGIN.replace("  cache: 8h", "  resources: [https://cdn.example/a]\n  cache: 8h")}`;
  assert.match(problemsOf(text).join(), /login\.resources\[0\] must be scheme, host and port only/);
  const { checked } = check([{ file: "f", text: text.replace("cdn.example/a", "cdn.example") }]);
  assert.equal(checked.length, 2);
});

test("the page that says that a session has ended is a condition without templates", () => {
  const problems = (expired: string) =>
    problemsOf(`${ACCOUNT}${LOGIN.replace("  cache: 8h", `  expired: ${expired}\n  cache: 8h`)}`).join();
  assert.equal(problems('{ url: "/login" }'), "");
  assert.match(problems("{}"), /login\.expired needs a condition/);
  assert.match(problems("{ text: '{{ $credential.username }}' }"), /login\.expired must not have templates/);
});

test("editors get the steps as a schema that refers to itself", () => {
  const { $defs } = configSchema() as { readonly $defs: Readonly<Record<string, any>> };
  const step = $defs["browser_login_step"];
  assert.equal(step.properties.when.properties.visible.$ref, "#/$defs/browser_login_locator");
  assert.equal(step.properties.steps.items.$ref, "#/$defs/browser_login_step");
  assert.equal($defs["login_browser"].properties.steps.items.$ref, "#/$defs/browser_login_step");
  assert.equal($defs["browser_login_locator"].properties.in.$ref, "#/$defs/browser_login_locator");
});

test("the nearest names: the same role first, then shared words, then letters; no value of a field", () => {
  const asIs = (text: string): string => text;
  const page = [
    { role: "heading", name: "Sign in to Acme" },
    { role: "button", name: "Help", children: [{ role: "img", name: "Question" }] },
    { role: "button", name: "Sign up" },
    { role: "button", name: "Log in" },
    { role: "button", name: "Delete the whole account" },
    { role: "textbox", name: "Email", text: "dana@example.com" },
  ];
  const names = namesOf(page, asIs);
  assert.deepEqual(
    nearestTo({ role: "button", name: "Sign in" }, names).map(({ role, name }) => `${role} ${name}`),
    ["button Sign up", "button Log in", "button Help", "button Delete the whole account"],
    "four at most",
  );
  assert.deepEqual(
    nearestTo({ role: "link", name: "Sign in" }, names).map(({ role }) => role),
    ["heading", "button", "button"],
    "of another role only with a word in common",
  );
  assert.deepEqual(nearestTo({ label: "E-mail" }, names), [{ role: "textbox", name: "Email" }]);
  const many = Array.from({ length: 2_001 }, (_, index) => ({ role: "link", name: `Page ${index}` }));
  assert.equal(namesOf(many, asIs).length, 2_000, "a page of any size takes a bounded time");
  const secret = "s".repeat(80);
  const [shown] = namesOf({ role: "button", name: `Use ${secret}` }, (text) => text.replace(secret, "*"));
  assert.equal(shown?.name, "Use *", "a name that would be shortened is cleaned before");
});

test("patterns of URLs: `*` within a part of the path, `**` across", () => {
  assert.ok(matchesUrl("https://a.example/login?x=1", "**/login*"));
  assert.ok(matchesUrl("https://a.example/login", "/login"));
  assert.ok(!matchesUrl("https://a.example/b/login", "/*"));
  assert.ok(matchesUrl("https://a.example/b/c", "/**"));
  assert.ok(!matchesUrl("https://a.example/xlogin", "/.login"));
});
