// docs/recipes: every recipe that lies there is in order, is explained, and gives what its recording says; and its recording is what a
// run against a target gives. LATCHKEY_RECORD_RECIPES=1 writes the recordings anew.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { must } from "#lib/assert.ts";
import type { Target } from "../documents/target.ts";
import { runCommand } from "../service-process.ts";
import { testInAll } from "../tiers.ts";
import { openRecipeTarget, RECIPE_RUNS } from "./recipe-target.ts";

const FOLDER = join(import.meta.dirname, "../../docs/recipes");
const RECORDS = process.env["LATCHKEY_RECORD_RECIPES"] === "1";
const NAMES = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".yaml") && file !== "account.yaml")
  .map((file) => basename(file, ".yaml"));
const document = (name: string): string => join(FOLDER, `${name}.yaml`);
const recording = (name: string): string => join(FOLDER, `${name}.recording.json`);

let target: Target;
let scratch: string;
before(async () => {
  scratch = mkdtempSync(join(tmpdir(), "latchkey-recipes-"));
  target = await openRecipeTarget();
});
after(async () => {
  await target?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

test("the recipes are documents in order, without a warning, and each has a paragraph", async () => {
  const { code, stdout, stderr } = await runCommand(["validate", "-f", FOLDER], {});
  assert.deepEqual([code, stderr], [0, ""], stdout);
  const page = readFileSync(join(FOLDER, "README.md"), "utf8");
  const paragraphs = page
    .split("\n\n")
    .flatMap((text) => /^\[\*\*(\S+)\.yaml\*\*\]\(\1\.yaml\): /.exec(text)?.[1] ?? []);
  assert.deepEqual(paragraphs.toSorted(), NAMES.toSorted());
  assert.ok(NAMES.length >= 6);
});

for (const name of NAMES) {
  test(`${name}: its recording gives the same results, offline`, async () => {
    if (RECORDS) writeFileSync(recording(name), await recordAnew(name));
    assert.ok(existsSync(recording(name)), "LATCHKEY_RECORD_RECIPES=1 npm test -- examples/recipes");
    const replayed = await runCommand(
      ["run", document(name), "--replay", recording(name), "--check", "--json"],
      {},
    );
    assert.equal(replayed.code, 0, replayed.stderr);
    const { results } = JSON.parse(replayed.stdout);
    for (const { totalRecords } of Object.values<any>(results)) assert.ok(totalRecords > 0);
  });

  testInAll("the replay", `${name}: a run against a target gives its recording`, {}, async () => {
    // Requests that are sent at once come in any order.
    const parts = (text: string): unknown => {
      const { run: _run, exchanges, ...rest } = JSON.parse(text);
      return { ...rest, exchanges: exchanges.map((each: unknown) => JSON.stringify(each)).toSorted() };
    };
    assert.deepEqual(parts(await recordAnew(name)), parts(readFileSync(recording(name), "utf8")));
  });
}

/** The text of a new recording, as if the target were at the recipe's own host. */
async function recordAnew(name: string): Promise<string> {
  const { credential, slot, options = [], environment = {} } = must(RECIPE_RUNS[name], `how ${name} is run`);
  const text = readFileSync(document(name), "utf8");
  const host = must(/^hosts: \[(\S+)\]$/m.exec(text)?.[1], "the recipe's host");
  const [own, made, login] = ["yaml", "json", "login.yaml"].map((end) => join(scratch, `${name}.${end}`));
  writeFileSync(must(own, "file"), text.replaceAll(host, target.url));
  writeFileSync(must(login, "file"), JSON.stringify(credential ?? {}));
  const { code, stderr } = await runCommand(
    [
      ...["run", must(own, "file"), "--record", must(made, "file"), ...options],
      ...(credential === undefined ? [] : ["--credential", `${slot}=${login}`]),
    ],
    { LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8", ...environment },
  );
  assert.equal(code, 0, stderr);
  return readFileSync(must(made, "file"), "utf8").replaceAll(target.url, host);
}
