// docs/decisions/0030: `plan`, `export` and `schema`.
import assert from "node:assert/strict";
import { globSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { install, type CommandResult, type Installation } from "../service.ts";
import { newFolder, runCommand } from "./program.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");
const ACCOUNT = "account: acme\nname: Acme # the customer\n";
const BLUEPRINT = `blueprint: echo
account: acme
timeout: 10m
nodes:
  - { id: in, type: input, refKey: words, default: "yes", name: "a: b # c\\n  'd'" }
  - { id: rows, type: parse, from: in, format: json }
  - { id: out, type: output, refKey: words, from: rows }
`;

let installation: Installation & AsyncDisposable;
let folder: string;
before(async () => {
  installation = await install();
  folder = newFolder();
});
after(async () => {
  await installation[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const run = async (exitCode: number, ...arguments_: string[]): Promise<CommandResult> =>
  await runCommand(installation, exitCode, arguments_);

const file = (text: string): string => {
  const path = join(folder, "config.yaml");
  writeFileSync(path, text);
  return path;
};
const versions = async (): Promise<unknown> =>
  await installation.database.db.query("select blueprint_id, version, document from blueprint_version");

test("`plan` says what `apply` would change, place by place, and changes nothing", async () => {
  const path = file(`${ACCOUNT}---\n${BLUEPRINT}`);
  const first = await run(3, "plan", "-f", path);
  assert.equal(first.stdout, "+ create    account   acme\n+ create    blueprint acme/echo\n");
  assert.match(first.stderr, /^2 documents would change; nothing has been changed\.$/m);
  assert.deepEqual(await versions(), []);

  await run(0, "apply", "-f", path);
  const none = await run(0, "plan", "-f", path);
  assert.equal(none.stdout, "  unchanged account   acme\n  unchanged blueprint acme/echo\n");

  const changed = BLUEPRINT.replace("timeout: 10m\n", "retired: true\n").replace(
    "format: json",
    "format: csv",
  );
  const before = await versions();
  const third = await run(3, "plan", "-f", file(changed));
  assert.equal(
    third.stdout,
    [
      "- retire    blueprint acme/echo",
      "      + retired: true",
      '      ~ nodes.rows.format: "json" → "csv"',
      '      - timeout: "10m"',
      "",
    ].join("\n"),
  );
  const json = JSON.parse((await run(3, "plan", "--json", "-f", file(changed))).stdout);
  assert.deepEqual(json.changes[0].differences[1], {
    path: "nodes.rows.format",
    before: "json",
    after: "csv",
  });
  assert.deepEqual(await versions(), before);
});

test("an account document that is written anew in one line says what it takes away", async () => {
  await run(
    0,
    "apply",
    "-f",
    file("account: stub\nname: Stub\nallowed_origins: [https://app.stub.example]\n"),
  );
  const short = file("account: stub\n");
  const says =
    /^warning: the document of the account stub omits `name`, `allowed_origins`, which the current version has/m;
  const planned = await run(3, "plan", "-f", short);
  assert.match(planned.stderr, says);
  const applied = await run(0, "apply", "-f", short);
  assert.match(applied.stderr, says);
  assert.equal(applied.stdout, planned.stdout);
  assert.match(applied.stdout, /^ {6}- name: "Stub"$/m);
});

test("what a document leaves to chance is printed as a warning by `validate`, `plan` and `apply`, and is no failure", async () => {
  const path = file(
    `${ACCOUNT}---\n${BLUEPRINT.replace("from: rows", "from: more")}`.replace(
      "  - { id: out",
      "  - { id: more, type: parse, from: in, format: json }\n  - { id: out",
    ),
  );
  const warning =
    /^warning: \S+config\.yaml:9:5 nodes\[1\] nothing reads the output of the node `rows`; name it in a `from`, or remove it$/m;
  const validated = await run(0, "validate", "-f", path);
  assert.match(validated.stderr, warning);
  assert.equal(validated.stdout, "2 documents are valid.\n");
  assert.match((await run(3, "plan", "-f", path)).stderr, warning);
  assert.match((await run(0, "apply", "-f", path)).stderr, warning);
  // In force: it is not said again.
  assert.doesNotMatch((await run(0, "plan", "-f", path)).stderr, /warning/);
  await run(0, "apply", "-f", file(`${ACCOUNT}---\n${BLUEPRINT}`));
});

test("`plan` refuses what `apply` refuses, in the same words", async () => {
  const path = file(BLUEPRINT.replace("from: rows", "from: rowz"));
  const [plan, apply] = [await run(1, "plan", "-f", path), await run(1, "apply", "-f", path)];
  assert.match(plan.stderr, /there is no node `rowz`; did you mean `rows`/);
  assert.equal(plan.stderr, apply.stderr);
});

test("what `export` gives is what is in force: applied again, here or elsewhere, it changes nothing", async () => {
  await run(0, "apply", "-f", EXAMPLES, "-f", file(`account: beta\n---\n${BLUEPRINT}`));
  const all = (await run(0, "export")).stdout;
  const again = await run(0, "plan", "-f", file(all));
  assert.match(again.stdout, /unchanged account   acme\n/);
  assert.doesNotMatch(again.stdout, /^[+~-]/m);

  const acme = (await run(0, "export", "--account", "acme")).stdout;
  assert.match(acme, /^account: acme\n/);
  assert.match(acme, /\nblueprint: echo\n/);
  assert.ok(acme.length < all.length);
  assert.match((await run(1, "export", "--account", "nobody")).stderr, /There is no account nobody\./);

  const output = join(folder, "config");
  await run(0, "export", "-o", output);
  const files = globSync("**/*.yaml", { cwd: output });
  assert.ok(
    files.includes(join("acme", "account.yaml")) && files.includes(join("acme", "blueprints", "echo.yaml")),
  );
  assert.doesNotMatch((await run(0, "plan", "-f", output)).stdout, /^[+~-]/m);
  assert.match((await run(1, "export", "-o", output)).stderr, /already exists\. Choose an empty folder\./);

  await using elsewhere = await install();
  const made = await elsewhere.command("apply", "-f", output);
  assert.equal(made.code, 0, made.stderr);
  assert.equal((await elsewhere.command("export")).stdout, all);
});

test("`schema` prints a JSON Schema and needs neither settings nor a database", async () => {
  const { stdout } = await run(0, "schema");
  assert.equal(JSON.parse(stdout).title, "Latchkey configuration");
});
