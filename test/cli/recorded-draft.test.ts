// How actions that the driver's recorder tells become documents.
import assert from "node:assert/strict";
import { test } from "node:test";
import { draftDocuments, type DraftRequest } from "#cli/recorded-draft.ts";
import { locatorOf } from "#cli/recorded-locator.ts";
import { Secret } from "#lib/secret.ts";
import type { RecordedAction, RecordedLocator, Recording } from "#outbound/browser/recorder.ts";
import { check } from "../config/problems-of.ts";

const URL_OF_LOGIN = "https://portal.example.com/login?next=%2F";

const role = (name: string, of = "button"): RecordedLocator => ({
  kind: "role",
  body: of,
  options: { attrs: [], exact: false, name },
});

const action = (
  name: string,
  locator: RecordedLocator | null,
  more: Partial<RecordedAction> = {},
): RecordedAction => ({
  ...{ name, locator, window: 0, url: URL_OF_LOGIN, typed: null, field: null, options: [], key: "" },
  ...{ modifiers: 0, button: "left", clickCount: 1, text: "", opens: null, downloads: false, dialog: null },
  ...more,
});

const fill = (label: string, typed: string, type = "text", autocomplete = ""): RecordedAction =>
  action("fill", role(label, "textbox"), {
    typed: new Secret(typed),
    field: { type, autocomplete, name: "" },
  });

function draft(
  actions: readonly RecordedAction[],
  more: Partial<DraftRequest> = {},
  of: Partial<Recording> = {},
): string {
  const request = { url: URL_OF_LOGIN, hosts: ["https://portal.example.com"], account: "acme" };
  const text = draftDocuments(
    { actions, resources: new Set(), signOut: null, ...of },
    { ...request, strategy: "strat_it", blueprint: null, ...more },
  );
  const { problems } = check([
    { file: "account.yaml", text: "account: acme\n" },
    { file: "draft.yaml", text },
  ]);
  assert.deepEqual(problems, [], text);
  return text;
}

const BEGIN = [fill("Email", "dana@example.com", "email"), fill("Password", "swordfish", "password")];
const SIGN_IN = [...BEGIN, action("click", role("Sign in"))];

test("fields of a login are named by their kind; a code comes from the authenticator's secret", () => {
  const text = draft([
    fill("Customer number", "C-1"),
    ...SIGN_IN,
    fill("Code", "123456", "text", "one-time-code"),
    action("press", role("Code", "textbox"), { key: "Enter" }),
  ]);
  for (const line of [
    "  - { key: customer_number, label: Customer number, type: text }",
    "  - { key: username, label: Email, type: email }",
    "  - { key: password, label: Password, type: password }",
    "  - { key: totp, label: Authenticator secret, type: totp_secret }",
    '    - fill: { role: textbox, name: Code, with: "{{ $credential.totp.code }}" }',
    "    - goto: /login?next=%2F",
    "    - expect: { hidden: { role: textbox, name: Code } }",
    "    # Better: what the page shows after the sign-in, { visible: … }, and for a wrong password, rejected: { text: … }.",
  ])
    assert.ok(text.includes(`\n${line}\n`), `${line}\n${text}`);
});

test("a field whose page was gone before it could be looked at is known by its name", () => {
  const unseen = fill("Ihr Passwort", "swordfish");
  const text = draft([{ ...unseen, field: null }, action("click", role("Anmelden"))]);
  assert.match(text, /with: "\{\{ \$credential\.password \}\}"/);
});

test("what the author marks is expected, the control for signing out otherwise; resources are listed", () => {
  const signOut = { role: "link", name: "Log out" } as const;
  const marked = draft(
    [...SIGN_IN, action("assertVisible", role("Welcome", "heading"))],
    { blueprint: "it" },
    { signOut },
  );
  assert.match(marked, /- expect: \{ visible: \{ role: heading, name: Welcome \} \}\n---/);
  assert.ok(!marked.includes("Log out"));
  const found = draft(SIGN_IN, {}, { signOut, resources: new Set(["https://cdn.example"]) });
  assert.match(found, /- expect: \{ visible: \{ role: link, name: Log out \} \}/);
  assert.match(found, / {2}resources:\n {4}- https:\/\/cdn\.example\n/);
});

test("an element that shows what was typed is written as a reference where there is one, else not at all", () => {
  const menu = action("click", role("Dana@example.com ▾"), { url: "https://portal.example.com/home" });
  const text = draft([...SIGN_IN, menu, action("click", role("Invoices", "link"))], { blueprint: "list" });
  assert.ok(!/dana@|swordfish/i.test(text), text);
  assert.match(text, /# click an element: it shows what was typed, which is not kept; give it a locator\./);
  assert.match(text, /strategy: strat_it\n[^]*---\n[^]*credentials: \{ it: \{ strategy: strat_it \} \}/);
  assert.match(text, /- goto: \/home\n/);

  const searched = draft([fill("Search", "Alder"), action("click", role("Alder & Finch", "link"))], {
    strategy: null,
    blueprint: "list",
  });
  assert.match(searched, /- click: \{ role: link, name: "\{\{ \$inputs\.search \}\} & Finch" \}/);
  assert.match(searched, /hosts:\n {2}- https:\/\/portal\.example\.com\n/);
  const inLogin = draft([...BEGIN, action("click", role("swordfish")), action("click", role("Sign in"))]);
  assert.ok(!inLogin.includes("swordfish"), inLogin);
});

test("clicks and keys that only serve others are left out", () => {
  const text = draft(
    [
      action("openPage", null, { url: "about:blank" }),
      action("navigate", null, { url: "https://portal.example.com/login" }),
      action("click", role("Search", "textbox")),
      action("press", role("Search", "textbox"), { key: "Tab" }),
      fill("Search", "x"),
      fill("Search", "xyz"),
      action("press", role("Search", "textbox"), { key: "Enter" }),
      action("click", role("Go"), { clickCount: 0 }),
      action("press", role("All", "listbox"), { key: "a", modifiers: 2 }),
      action("press", role("All", "listbox"), { key: "ArrowDown", modifiers: 8 }),
      action("click", role("File", "row"), { clickCount: 2 }),
      action("click", role("File", "row"), { button: "right" }),
      action("navigate", null, { url: "https://portal.example.com/more" }),
      action("click", { kind: "default", body: "xpath=//b", options: {} }),
    ],
    { strategy: null, blueprint: "list" },
  );
  assert.ok(
    text.includes(`    steps:
      - goto: https://portal.example.com/login?next=%2F
      - fill: { role: textbox, name: Search, with: "{{ $inputs.search }}" }
      - press: { role: textbox, name: Search, key: Enter }
      - press: { role: listbox, name: All, key: Control+a }
      - press: { role: listbox, name: All, key: Shift+ArrowDown }
      - click: { role: row, name: File, double: true }
      - click: { role: row, name: File, button: right }
      - goto: https://portal.example.com/more
      # click an element: it has neither a name nor a selector; give it a locator (docs/browser.md#locators).
`),
    text,
  );
});

test("locators of the recorder in the words of documents", () => {
  const then = (...parts: readonly RecordedLocator[]): RecordedLocator => {
    const [first, ...rest] = parts;
    return { ...(first ?? role("")), ...(rest.length > 0 && { next: then(...rest) }) };
  };
  const css = (body: string): RecordedLocator => ({ kind: "default", body, options: {} });
  const frame: RecordedLocator = { kind: "frame", body: "" };
  const level = {
    kind: "role",
    body: "heading",
    options: { name: "A", attrs: [{ name: "level", value: 2 }] },
  };
  const cases: readonly (readonly [RecordedLocator, object | null])[] = [
    [
      { kind: "label", body: "Year", options: { exact: true } },
      { label: "Year", exact: true },
    ],
    [{ kind: "test-id", body: "box" }, { test_id: "box" }],
    [level, { role: "heading", name: "A", level: 2 }],
    [
      then(css("li"), { kind: "has-text", body: "B" }, role("Open")),
      { role: "button", name: "Open", in: { css: "li", has_text: "B" } },
    ],
    [then(role("Open"), { kind: "nth", body: "1" }), { role: "button", name: "Open", nth: 1 }],
    [then(role("Open"), { kind: "last", body: "" }), { role: "button", name: "Open", nth: -1 }],
    [
      then(css("#a"), frame, css("#b"), frame, role("In")),
      { role: "button", name: "In", frame: { css: "#b", frame: { css: "#a" } } },
    ],
    [
      then(css("#a"), frame, css("ul"), role("In")),
      { role: "button", name: "In", in: { css: "ul", frame: { css: "#a" } } },
    ],
    [css("text=A >> b"), null],
    [{ kind: "and", body: "x" }, null],
  ];
  for (const [recorded, expected] of cases) assert.deepEqual(locatorOf(recorded), expected);
});
