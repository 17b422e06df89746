import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { readAccount } from "#domain/account.ts";
import { readBlueprint } from "#domain/blueprint.ts";
import { readStrategy } from "#domain/strategy.ts";
import { check } from "./problems-of.ts";

function folder(name: string) {
  const url = new URL(`fixtures/${name}/`, import.meta.url);
  return readdirSync(url)
    .sort()
    .map((file) => ({ file, text: readFileSync(new URL(file, url), "utf8") }));
}

test("of the examples with planned keys, exactly what is not built and the dots are refused, by name and place", () => {
  assert.deepEqual(check(folder("page-3")).problems, [
    "account.yaml:9:35 branding.logo_url is not an image; embed the image itself: `data:image/png;base64,…` with the output of `base64 -w0 logo.png` (PNG, JPEG or WebP, at most 32 KiB)",
    "account.yaml:9:76 branding.support_url must be a web address that begins with https://, or mailto: and an email address",
    "account.yaml:11:63 webhooks[0].secret_env `secret_env` is not built yet; `latchkey webhooks rotate` makes the secret and shows it once",
  ]);
});

test("the examples without what is not built are accepted, accounts first", () => {
  const { checked, problems } = check(folder("built"));
  assert.deepEqual(problems, []);
  assert.deepEqual(
    checked.map(({ kind, account, id, retired, file, line }) => ({ kind, account, id, retired, file, line })),
    [
      { kind: "account", account: "acme", id: "acme", retired: false, file: "account.yaml", line: 1 },
      {
        kind: "strategy",
        account: "acme",
        id: "strat_acme_portal",
        retired: false,
        file: "strategy.yaml",
        line: 1,
      },
      {
        kind: "blueprint",
        account: "acme",
        id: "supplier-invoices",
        retired: false,
        file: "blueprint.yaml",
        line: 1,
      },
    ],
  );
});

test("what is accepted can be read: the readers of the domain find no shape that they don't know", () => {
  const [account, strategy, blueprint] = check(folder("built")).checked.map(({ document }) => document);
  assert.ok(account && strategy && blueprint);
  assert.equal(readAccount(account).sessionLifetimeMs, 7 * 86_400_000);
  assert.deepEqual(
    readStrategy(strategy).fields.map(({ key, required }) => [key, required]),
    [
      ["username", true],
      ["password", true],
      ["totp", false],
    ],
  );
  assert.equal(readStrategy(strategy).cacheMs, 900_000);
  assert.deepEqual(
    readBlueprint(blueprint).nodes.map(({ id, from }) => [id, from]),
    [
      ["period", []],
      ["upload", []],
      ["invoices", []],
      ["lines", ["invoices"]],
      ["checked", ["lines"]],
      ["gate", ["checked"]],
      ["out", []],
    ],
  );
});

test("a folder with ten mistakes lists all ten, each with file, line, column, path and a remedy", () => {
  const { checked, problems } = check(folder("ten-mistakes"));
  assert.deepEqual(problems, [
    "account.yaml:3:19 allowed_origins[0] must be scheme, host and port only; write `https://app.acme.example`",
    "account.yaml:4:1 retension unknown key `retension`; did you mean `retention`?",
    "blueprint.yaml:4:23 credentials.portal.strategy the account has no strategy `strat_portl`; did you mean `strat_portal`?",
    "blueprint.yaml:9:51 nodes[0].request.query.from no INPUT has the refKey `period`",
    "blueprint.yaml:13:11 nodes[1].from there is no node `lists`; did you mean `list`?",
    "blueprint.yaml:14:16 nodes[1].milestone `completed` is a built-in progress step; choose another name",
    'blueprint.yaml:15:22 nodes[1].fields.total the expression doesn\'t compile: Expected ")" before end of expression (`$number(total`)',
    "blueprint.yaml:19:3 nodes[0] the key `steps` is missing (The steps, in order); add it",
    "strategy.yaml:4:1 feilds unknown key `feilds`; did you mean `fields`?",
    "strategy.yaml:7:46 fields[1].autocomplete a field of type `file` has no `autocomplete`; remove it",
  ]);
  assert.deepEqual(checked, []);
});
