// What operators do to documents: checked in the words of the command line, applied whole or not at all, and on record.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { environmentOf, ROOT } from "../cli/program.ts";
import { connect, openCaller } from "../caller.ts";
import type { Browser } from "./browser.ts";
import { goodAnswer } from "./good-answer.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

const STRATEGY = `strategy: strat_acme
account: acme
name: { en: Acme portal, de: Acme-Portal }
fields:
  - { key: token, type: password, label: { en: Token, de: Schlüssel } }
  - { key: region, type: select, options: [north, { value: south, label: South }] }
login: { type: none }
`;
const BLUEPRINT = `blueprint: list-it
account: acme
name: List it
credentials: { it: { strategy: strat_acme } }
metadata: [{ name: po, required: true }]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: total, type: map, from: list, fields: { n: n, all: $nodes.list.n } }
  - { id: out, type: output, refKey: out, from: total }
`;
const MAIN = join(ROOT, "src/main.mjs");
const ONE = "/accounts/acme/blueprints/list-it";

let stage: OperatorStage;
let admin: Someone;
let browser: Browser;

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply("account: acme", STRATEGY, BLUEPRINT);
  admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  browser = await stage.holding(admin);
});

after(async () => await stage?.[Symbol.asyncDispose]());

const good = async (id: string, path: string, body?: unknown): Promise<any> =>
  (await goodAnswer(browser, id, path, body)).body;

const typed = (...texts: readonly string[]) => ({
  documents: texts.map((text, index) => ({ file: `typed-${index}.yaml`, text })),
});

test("a Blueprint is listed and read, with its drawing and what a trigger of it takes", async () => {
  const { items } = await good("listBlueprints", "/blueprints?account=acme&retired=false");
  assert.deepEqual(
    items.map((each: any) => [each.key, each.name, each.version, each.applied_by, each.last_run]),
    [["list-it", "List it", 1, null, null]],
  );
  assert.deepEqual(items[0].recent_runs, { completed: 0, failed: 0 });
  const read = await good("readBlueprint", ONE);
  assert.deepEqual(read.credentials, [{ slot: "it", strategy: "strat_acme" }]);
  assert.deepEqual(read.metadata, [{ name: "po", label: null, is_required: true }]);
  assert.deepEqual(read.inputs, [
    { ref_key: "data", name: null, accepts: "any", is_required: false, schema: null },
  ]);
  assert.deepEqual(
    read.graph.edges.map((edge: any) => `${edge.from} ${edge.kind} ${edge.to}`),
    ["data flow list", "list flow total", "total flow out"],
  );
  // What is shown can be applied: it is what is in force.
  const plan = await good("planConfig", "/config/plan", typed(read.yaml));
  assert.deepEqual(
    plan.changes.map((each: any) => each.change),
    ["unchanged"],
  );
});

test("lists go on page by page, by name", async () => {
  const more = ["a-one", "b-two", "z-last"].map((key) => BLUEPRINT.replace("list-it", key));
  await good("applyConfig", "/config/apply", typed(...more));
  const first = await good("listBlueprints", "/blueprints?limit=2");
  const second = await good("listBlueprints", `/blueprints?limit=2&cursor=${first.next_cursor}`);
  assert.deepEqual(
    [...first.items, ...second.items].map(({ key }) => key),
    ["a-one", "b-two", "list-it", "z-last"],
  );
  assert.equal(second.next_cursor, null);
  for (const cursor of ["abc", `${first.next_cursor}A`, Buffer.from("a/b/c").toString("base64url")]) {
    const refused = await browser.send("GET", `/blueprints?cursor=${cursor}`);
    assert.deepEqual([refused.status, refused.body.error.details[0].field], [422, "cursor"]);
  }
});

test("a check names every problem with its place, as the command line does, and changes nothing", async () => {
  const wrong = BLUEPRINT.replace("from: data, format: json", "from: dta, format: jsonn");
  const { problems, documents } = await good("checkConfig", "/config/check", typed(wrong));
  assert.deepEqual(
    problems.map(({ line, path }: any) => [line, path]),
    [
      [8, "nodes[1].from"],
      [8, "nodes[1].format"],
    ],
  );
  assert.match(problems[0].message, /there is no node `dta`; did you mean `data`\?/);
  assert.deepEqual(documents, []);
  const fine = await good("checkConfig", "/config/check", { ...typed(BLUEPRINT, STRATEGY), language: "de" });
  assert.deepEqual([fine.problems, fine.warnings], [[], []]);
  // What is left to chance is no problem: it is shown, and can be published.
  const unread = BLUEPRINT.replace("from: total }", "from: list }");
  const { problems: none, warnings } = await good("checkConfig", "/config/check", typed(unread));
  assert.deepEqual(none, []);
  const [warning] = warnings;
  assert.deepEqual([warnings.length, warning.line, warning.path], [1, 9, "nodes[2]"]);
  assert.match(warning.message, /^nothing reads the output of the node `total`/);
  const { warnings: planned } = await good("planConfig", "/config/plan", typed(unread));
  assert.match(planned[0], /^typed-0\.yaml:9:5 nodes\[2\] nothing reads/);
  assert.equal(fine.documents.find((each: any) => each.kind === "blueprint").graph.nodes.length, 4);
  const { form } = fine.documents.find((each: any) => each.kind === "strategy");
  assert.equal(form.name, "Acme-Portal");
  assert.deepEqual(
    form.fields.map((field: any) => [field.label, field.type, field.is_secret, field.options.length]),
    [
      ["Schlüssel", "password", true, 0],
      ["region", "select", false, 2],
    ],
  );
  assert.equal((await good("readBlueprint", ONE)).version, 1);
});

test("a preview is the hosted page of a strategy that need not be published; anything else is refused", async () => {
  const draft = STRATEGY.replace("Acme-Portal", "Entwurf").replace("Schlüssel", "<b>Schlüssel</b>");
  const wanted = { language: "de", scheme: "dark" };
  const { page } = await good("previewForm", "/strategies/preview", { text: draft, ...wanted });
  assert.match(
    page,
    /<html\s+lang="de"\s+dir="ltr"\s+data-theme="dark"\s*>[^]*<h1>[^]*Entwurf[^]*&lt;b&gt;Schlüssel/,
  );
  assert.match(page, /<strong><bdi>acme<\/bdi><\/strong>/, "the account's name as end users see it");
  for (const [text, message] of [
    [STRATEGY.replace("type: none", "type: nothing"), /login\.type/],
    [BLUEPRINT, /Give the document of one strategy/],
    [`${STRATEGY}---\n${STRATEGY.replace("strat_acme", "strat_other")}`, /Give the document of one strategy/],
  ] as const) {
    const refused = await browser.send("POST", "/strategies/preview", { text, ...wanted });
    assert.equal(refused.status, 422);
    assert.match(refused.text, message);
  }
});

test("a plan says how many credentials a widened strategy will not reach", async () => {
  const hosts = (...all: readonly string[]): string =>
    `${STRATEGY.replaceAll("strat_acme", "strat_hosts")}hosts: [${all.join(", ")}]\n`;
  const [old, added] = ["https://old.example.com", "https://new.example.com"];
  await stage.installation.apply(hosts(old));
  await stage.db.query(
    `insert into credential (id, account_id, strategy_id, session_id, sealed, kid, origins)
     select 'cred_' || cardinality(reaches), account_id, id, 'sess_' || cardinality(reaches), '',
       (select kid from vault_key limit 1), reaches
     from strategy, (values (array[$1::text]), (array[$1::text, $2::text])) as given (reaches) where id = 'strat_hosts'`,
    [old, added],
  );
  const plan = await good("planConfig", "/config/plan", typed(hosts(old, added)));
  assert.equal(plan.warnings.length, 1);
  assert.match(
    plan.warnings[0],
    /^One credential of acme\/strat_hosts was not connected for https:\/\/new\.example\.com and/,
  );
  assert.deepEqual((await good("planConfig", "/config/plan", typed(hosts(old)))).warnings, []);
  await stage.db.query("delete from credential where strategy_id = 'strat_hosts'");
});

test("documents are applied together or not at all; each change is a version with its author, on record", async () => {
  const changed = BLUEPRINT.replace("name: List it", "name: List all");
  const plan = await good("planConfig", "/config/plan", typed(changed));
  assert.deepEqual(plan.changes[0].differences, [{ path: "name", before: '"List it"', after: '"List all"' }]);
  const refused = await browser.send(
    "POST",
    "/config/apply",
    typed(changed, STRATEGY.replace("password", "passwort")),
  );
  assert.equal(refused.status, 422);
  assert.match(refused.body.error.details[0].message, /^typed-1\.yaml:5:\d+ fields\[0\]\.type /);
  assert.equal((await good("readBlueprint", ONE)).version, 1, "nothing was changed");
  const applied = await good("applyConfig", "/config/apply", typed(changed));
  assert.deepEqual(applied, {
    changes: plan.changes,
    proposal: null,
    warnings: [],
  });
  const version = await good("readBlueprintVersion", `${ONE}/versions/2`);
  assert.deepEqual([version.applied_by, version.against], [admin.email, 1]);
  assert.deepEqual(version.differences, plan.changes[0].differences);
  const rows = await stage.db.query<{ actor: string }>(
    `select actor_kind || ' ' || actor_id as actor from audit_entry where action = 'config.apply' and subject_id = 'list-it'
     and actor_kind = 'operator'`,
  );
  assert.deepEqual(rows, [{ actor: `operator ${admin.id}` }]);
});

test("an earlier version is published again as a new one; a Blueprint is retired and brought back", async () => {
  await good("publishBlueprintVersion", `${ONE}/versions/1/publish`);
  const { items } = await good("listBlueprintVersions", `${ONE}/versions?limit=2`);
  assert.deepEqual(
    items.map((each: any) => [each.version, each.is_in_force]),
    [
      [3, true],
      [2, false],
    ],
  );
  const third = await good("readBlueprintVersion", `${ONE}/versions/3?against=1`);
  assert.deepEqual(third.differences, []);
  await good("retireBlueprint", `${ONE}/retire`);
  assert.equal((await good("readBlueprint", ONE)).retired, true);
  assert.equal((await good("listBlueprints", "/blueprints?retired=true")).items.length, 1);
  assert.equal((await browser.send("POST", `${ONE}/runs`, {})).status, 404);
  await good("restoreBlueprint", `${ONE}/restore`);
  assert.equal((await good("readBlueprint", ONE)).retired, false);
  await good("retireStrategy", "/accounts/acme/strategies/strat_acme/retire");
  await good("restoreStrategy", "/accounts/acme/strategies/strat_acme/restore");
  const strategy = await good("readStrategy", "/accounts/acme/strategies/strat_acme");
  assert.deepEqual(
    [strategy.version, strategy.login_type, strategy.fields],
    [3, "none", ["token", "region"]],
  );
  await good("publishStrategyVersion", "/accounts/acme/strategies/strat_acme/versions/2/publish");
  await good("publishStrategyVersion", "/accounts/acme/strategies/strat_acme/versions/1/publish");
  assert.equal((await good("listStrategies", "/strategies")).items[0].version, 5);
  await good("listStrategyVersions", "/accounts/acme/strategies/strat_acme/versions");
  await good("readStrategyVersion", "/accounts/acme/strategies/strat_acme/versions/1");
});

test("a document that was written from an older version is not published over the newer one unasked", async () => {
  const key = "two-editors";
  const text = (name: string, more = ""): string =>
    BLUEPRINT.replace("list-it", key).replace("name: List it", `name: ${name}`) + more;
  const publish = async (document: string, base: number) =>
    await browser.send("POST", "/config/apply", { ...typed(document), base_version: base });
  assert.equal((await publish(text("One"), 0)).status, 200);
  // Two operators begin with version 1; the first one publishes.
  assert.equal((await publish(text("Theirs"), 1)).status, 200);
  const late = await publish(text("One", "timeout: 5m\n"), 1);
  assert.equal(late.status, 409);
  assert.match(
    late.body.error.message,
    new RegExp(`The Blueprint two-editors has changed since version 1: ${admin.email} published version 2`),
  );
  const again = await publish(text("One"), 0);
  assert.deepEqual([again.status, /exists already/.test(again.text)], [409, true]);
  const plan = async (base: number) =>
    (await good("planConfig", "/config/plan", { ...typed(text("One", "timeout: 5m\n")), base_version: base }))
      .conflict;
  const { theirs, ours, ...conflict } = await plan(1);
  assert.deepEqual([conflict.version, conflict.applied_by], [2, admin.email]);
  const paths = (differences: readonly { path: string }[]) => differences.map(({ path }) => path);
  assert.deepEqual([paths(theirs), paths(ours)], [["name"], ["timeout"]]);
  assert.equal(await plan(2), null);
  assert.equal((await publish(text("One", "timeout: 5m\n"), 2)).status, 200, "knowingly");
  const two = await browser.send("POST", "/config/apply", {
    ...typed(BLUEPRINT, STRATEGY),
    base_version: 1,
  });
  assert.deepEqual([two.status, two.body.error.details[0].field], [422, "base_version"]);
  // As the command line, which knows of no version.
  await good("applyConfig", "/config/apply", typed(text("Whatever")));
});

const commented = (key: string, name: string) => `# Invoices of ${key}
blueprint: ${key}
account: acme
name: ${name} # shown to operators
nodes:
  # What the caller sends
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }
`;

test("comments stay: of a file, of the editor, by themselves, when published again and when retired", async () => {
  const one = "/accounts/acme/blueprints/commented";
  const written = commented("commented", "One");
  await stage.installation.apply(`account: acme\n---\n${written}`);
  const read = async () => await good("readBlueprint", one);
  assert.deepEqual([(await read()).yaml, (await read()).version], [written, 1]);
  const exported = await stage.installation.command("export", "--account", "acme");
  assert.ok(exported.stdout.includes(written), exported.stdout);
  // A comment alone is no new version, and is not lost.
  const more = written.replace("# What the caller sends", "# What the caller sends, as JSON");
  await good("applyConfig", "/config/apply", typed(more));
  assert.deepEqual([(await read()).yaml, (await read()).version], [more, 1]);
  await good("applyConfig", "/config/apply", typed(more.replace("One", "Two")));
  assert.equal((await good("readBlueprintVersion", `${one}/versions/1`)).yaml, more);
  await good("publishBlueprintVersion", `${one}/versions/1/publish`);
  assert.deepEqual([(await read()).yaml, (await read()).version], [more, 3]);
  await good("retireBlueprint", `${one}/retire`);
  assert.match(
    (await read()).yaml,
    /^# Invoices of commented\n[\s\S]*# shown to operators[\s\S]*retired: true\n$/,
  );
  await good("restoreBlueprint", `${one}/restore`);
  assert.doesNotMatch((await read()).yaml, /retired/);
  // The document is signed; its text is shown only while it says the same.
  await stage.db.query("update document_source set text = replace(text, 'format: json', 'format: csv')");
  const { yaml } = await read();
  assert.match(yaml, /format: json/);
  assert.doesNotMatch(yaml, /csv|#/);
});

test("the command line names what its files undo of the dashboard's changes, and asks at a terminal", async () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-drift-"));
  const file = join(folder, "drift.yaml");
  const write = (name: string, more = "") => writeFileSync(file, commented("drift", name) + more);
  const current = async () => (await good("readBlueprint", "/accounts/acme/blueprints/drift")).name;
  write("One");
  await stage.installation.command("apply", "-f", file);
  await good("applyConfig", "/config/apply", typed(commented("drift", "Theirs")));
  const warning = `warning: ${admin.email} published version 2 of the blueprint acme/drift in the dashboard; these files undo its \`name\``;
  assert.ok((await stage.installation.command("plan", "-f", file)).stderr.includes(warning));
  const atTerminal = (answer: string) =>
    spawnSync("script", ["-qec", `"${process.execPath}" "${MAIN}" apply -f "${file}"`, "/dev/null"], {
      env: environmentOf(stage.installation.environment),
      input: answer,
      encoding: "utf8",
    });
  const no = atTerminal("n\n");
  assert.match(no.stdout, /Apply the files anyway\? \[y\/N\][\s\S]*Nothing was changed/);
  assert.deepEqual([no.status, await current()], [1, "Theirs"]);
  // Files that have taken the change in undo nothing of it.
  write("Theirs", "timeout: 5m\n");
  assert.doesNotMatch((await stage.installation.command("plan", "-f", file)).stderr, /in the dashboard/);
  write("One");
  const yes = atTerminal("y\n");
  assert.deepEqual([yes.status, await current()], [0, "One"], yes.stdout);
  await good("applyConfig", "/config/apply", typed(commented("drift", "Theirs")));
  // Nobody can be asked: the files count, as in a pipeline.
  const piped = await stage.installation.command("apply", "-f", file);
  assert.deepEqual(
    [piped.code, piped.stderr.includes("these files undo its `name`"), await current()],
    [0, true, "One"],
  );
  rmSync(folder, { recursive: true });
});

test("an operator tries a Blueprint: the run is checked as a trigger's, and says who started it", async () => {
  const caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  const credential = await connect(caller, "strat_acme", { token: "value", region: "north" });
  const without = await browser.send("POST", `${ONE}/runs`, { credential_ids: [credential] });
  assert.deepEqual([without.status, without.body.error.details[0].field], [400, "po"]);
  const nobody = await browser.send("POST", `${ONE}/runs`, {
    credential_ids: ["cred_00000000000000000000000000"],
    metadata: { po: "1" },
  });
  assert.deepEqual([nobody.status, nobody.body.error.details[0].field], [422, "credential_ids"]);
  const started = await good("startRun", `${ONE}/runs`, {
    run_name: "a try",
    credential_ids: [credential],
    metadata: { po: "1" },
    inputs: { data: '[{"n": 1}]' },
  });
  assert.equal((await caller.waitForRun(started.id, 100_000)).body.status, "completed");
  const run = await good("readRun", `/runs/${started.id}`);
  assert.deepEqual([run.started_by, run.api_key_id, run.name], [admin.email, null, "a try"]);
  const { last_run: last } = await good("readBlueprint", ONE);
  assert.deepEqual([last.id, last.status, last.progress_step], [started.id, "completed", "completed"]);
  // Of the newest twenty alone.
  await stage.db.query(
    `insert into run select (jsonb_populate_record(run, jsonb_build_object('id', 'run_' || lpad(n::text, 28, '0'),
       'run_key', gen_random_uuid(), 'created_at', created_at - n * interval '1 s', 'status', 'failed', 'error_kind', 'target', 'response_bytes', null))).*
     from run, generate_series(1, 30) n where id = $1`,
    [started.id],
  );
  const { items } = await good("listBlueprints", "/blueprints");
  const { recent_runs: recent } = items.find(({ key }: any) => key === "list-it");
  assert.deepEqual(recent, { completed: 1, failed: 19 });
});

test("what is not there is 404, however it is called", async () => {
  for (const path of [
    "/accounts/nobody/blueprints/list-it",
    "/accounts/acme/blueprints/none",
    "/accounts/acme/blueprints/%00",
    "/accounts/%00/blueprints/list-it",
    `${ONE}/versions/99`,
    `${ONE}/versions/0`,
    `${ONE}/versions/1e3`,
    "/accounts/acme/strategies/strat_none",
  ])
    assert.equal((await browser.send("GET", path)).status, 404, path);
  for (const path of ["/blueprints?account=%00", "/runs?account=%00", "/runs?run_name=%00"])
    assert.equal((await browser.send("GET", path)).status, 422, path);
});

test("an editor gets the schema of all documents", async () => {
  const schema = await good("readConfigSchema", "/config/schema");
  assert.ok("blueprint" in schema.$defs && "node_http" in schema.$defs);
});
