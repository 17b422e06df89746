// `latchkey new blueprint|strategy` starts one from a template, and `apply` accepts what it writes.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { loginTypes } from "#strategies/registry.ts";
import { blueprintTemplate, SOURCES } from "#cli/blueprint-template.ts";
import { LOGIN_TEMPLATES, strategyTemplate } from "#cli/strategy-template.ts";
import { check } from "../config/problems-of.ts";
import { latchkey, newFolder } from "./program.ts";

const folder = newFolder();
after(() => rmSync(folder, { recursive: true, force: true }));

const account = { file: "account.yaml", text: "account: acme\n" };
const strategy = {
  file: "strategy.yaml",
  text: strategyTemplate("http", { name: "strat_it", account: "acme", strategy: null }),
};

test("every template of a strategy is accepted, and there is one for every login type", () => {
  assert.deepEqual(Object.keys(LOGIN_TEMPLATES).toSorted(), [...loginTypes.keys()].toSorted());
  for (const login of Object.keys(LOGIN_TEMPLATES)) {
    const text = strategyTemplate(login, { name: "strat_new", account: "acme", strategy: null });
    const { checked, problems } = check([account, { file: "new.yaml", text }]);
    assert.deepEqual(problems, [], login);
    assert.deepEqual(
      checked.flatMap(({ warnings }) => warnings),
      [],
    );
    assert.equal(checked.length, 2);
  }
});

test("every template of a Blueprint is accepted, with a strategy and without", () => {
  for (const from of SOURCES)
    for (const id of [null, "strat_it"]) {
      const text = blueprintTemplate(from, { name: "new-one", account: "acme", strategy: id });
      const { checked, problems } = check([account, strategy, { file: "new.yaml", text }]);
      assert.deepEqual(problems, [], from);
      assert.deepEqual(
        checked.flatMap(({ warnings }) => warnings),
        [],
      );
      assert.equal(checked.length, 3);
    }
});

test("`latchkey new` writes the file once, and nothing under a name that can't be one", async () => {
  const file = join(folder, "deeper", "invoices.yaml");
  const command = ["new", "blueprint", "invoices", "--from", "csv", "--account", "beta", "-o", file];
  const made = await latchkey(command, {});
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^Wrote .*invoices\.yaml\. Edit it, then: latchkey validate -f /);
  const text = readFileSync(file, "utf8");
  assert.match(text, /^blueprint: invoices\naccount: beta\n/);
  assert.deepEqual(
    check([
      { file: "a", text: "account: beta\n" },
      { file: "b", text },
    ]).problems,
    [],
  );

  const again = await latchkey(command, {});
  assert.equal(again.code, 1);
  assert.match(again.stderr, /invoices\.yaml already exists\. Choose another name, or --output\./);
  assert.equal(readFileSync(file, "utf8"), text);

  const wrong = await latchkey(["new", "strategy", "no good"], {}, { cwd: folder });
  assert.equal(wrong.code, 2);
  assert.match(
    wrong.stderr,
    /:1:\d+ strategy must be an id that starts with `strat_`.*\nNothing was written\./,
  );
  assert.ok(!existsSync(join(folder, "strat_no good.yaml")));
});
