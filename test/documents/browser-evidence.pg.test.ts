// docs/browser.md#when-a-step-fails: evidence is kept with the run, shown to operators, and purged with its data.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readPng } from "#lib/png.ts";
import { EMAIL, openPortal, PASSWORD, TOKEN } from "../browser/portal.ts";
import { openProgram } from "../browser/program.ts";
import { openBench, type Bench } from "./bench.ts";

const STRATEGY = `strategy: strat_portal
account: acme
hosts: ["{TARGET}"]
fields: [{ key: email, type: email }, { key: password, type: password }]
login:
  type: browser
  steps:
    - goto: /login
    - dismiss: { role: button, name: Accept all }
    - fill: { label: Email, with: "{{ $credential.email }}" }
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - click: { role: button, name: Sign in }
    - expect: { visible: { role: heading, name: Dashboard }, rejected: { text: Wrong email or password } }
`;
/** A step that is to fail waits a short time, one that is to succeed the usual time. */
const MISSING = "click: { role: button, name: Nxet, exact: true }\n        timeout: 300ms";
const node = (name: string, last: string, more = "") => `blueprint: ${name}
account: acme
credentials: { portal: { strategy: strat_portal } }
nodes:
  - id: read
    type: browser
    credential: portal
    retry: { attempts: 1 }${more}
    steps:
      - goto: /invoices
      - ${last}
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }
`;
const DOCUMENTS = [
  STRATEGY,
  node("failing", MISSING),
  node("silent", MISSING, "\n    evidence: off"),
  node("always", "click: { role: button, name: Next }", "\n    evidence: always"),
];

interface ShownStep {
  readonly node: string;
  readonly log: readonly { readonly message: string }[];
  readonly evidence: readonly {
    readonly reason: string;
    readonly step: string;
    readonly outline: string;
    readonly has_picture: boolean;
  }[];
}

let program: Awaited<ReturnType<typeof openProgram>>;
let bench: Bench;
let credential_id: string;
const folders: string[] = [];

before(async () => {
  program = await openProgram();
  bench = await openBench(DOCUMENTS, undefined, { LATCHKEY_BROWSER: program.path });
  openPortal(bench.target);
  credential_id = await bench.connect("strat_portal", { email: EMAIL, password: PASSWORD });
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  program?.remove();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

interface ShownRun {
  readonly steps: readonly ShownStep[];
  readonly failed_step: object | null;
  readonly pictures: readonly Buffer[];
}

/** The place of a text in a document as it was applied. */
function placeOf(document: string, text: string): { readonly line: number; readonly column: number } {
  const before = document.slice(0, document.indexOf(text)).split("\n");
  return { line: before.length, column: (before.at(-1) ?? "").length + 1 };
}

async function show(id: string): Promise<ShownRun> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-pictures-"));
  folders.push(folder);
  const told = await bench.installation.command("runs", "show", id, "--json", "--pictures", folder);
  assert.equal(told.code, 0, told.stderr);
  const pictures = readdirSync(folder).map((file) => readFileSync(join(folder, file)));
  return { ...(JSON.parse(told.stdout) as Omit<ShownRun, "pictures">), pictures };
}

test("a node that fails shows the step, the outline and a picture; purging the run removes the picture", async () => {
  const { id } = await bench.run("failing", { credential_id });
  const { steps, pictures, failed_step: place } = await show(id);
  const [step] = steps;
  const at = placeOf(node("failing", MISSING), "click:");
  assert.deepEqual(place, { document: "blueprint", name: "failing", version: 1, step: "steps[1]", ...at });
  assert.deepEqual(
    step?.evidence.map((each) => [each.reason, each.step, each.has_picture]),
    [["failed", 'steps[1] (click button "Nxet")', true]],
  );
  assert.match(step?.evidence[0]?.outline ?? "", /button "Next"/);
  assert.ok(step?.log.every(({ message }) => message !== "evidence"));
  assert.equal(pictures.length, 1);
  assert.equal(readPng(pictures[0] ?? Buffer.alloc(0)).width, 1280);
  const told = await bench.installation.command("runs", "show", id);
  assert.match(
    told.stdout,
    new RegExp(`failed at +failing, version 1, line ${at.line}, column ${at.column}\n`),
  );
  assert.match(
    told.stdout,
    /read steps\[1\] \(click button "Nxet"\) at .*\/invoices\n {2}The page has:\n {4}/,
  );
  const { db } = bench.installation.database;
  const objects = async () => await db.query("select key from blob where run_id = $1", [id]);
  assert.equal((await objects()).length, 1);
  const purged = await bench.installation.command("runs", "purge", id);
  assert.equal(purged.code, 0, purged.stderr);
  assert.deepEqual(await objects(), []);
});

test("a login that is refused shows its page, with what was typed covered and no token", async () => {
  const wrong = await bench.connect("strat_portal", { email: EMAIL, password: "wrong-canary-4242" });
  const { id } = await bench.run("failing", { credential_id: wrong });
  const { steps, pictures, failed_step: place } = await show(id);
  const [step] = steps;
  assert.deepEqual(place, {
    document: "strategy",
    name: "strat_portal",
    version: 1,
    step: "steps[5]",
    ...placeOf(STRATEGY, "expect:"),
  });
  assert.equal(step?.node, 'login steps[5] (expect heading "Dashboard" visible)');
  assert.match(step?.evidence[0]?.outline ?? "", /textbox "Password"/);
  assert.equal(pictures.length, 1);
  const kept = await bench.installation.database.db.query<{ text: string }>(
    "select run_step::text || coalesce(convert_from(log, 'UTF8'), '') as text from run_step",
  );
  for (const { text } of kept)
    for (const secret of ["wrong-canary-4242", PASSWORD, TOKEN]) assert.ok(!text.includes(secret), secret);
});

test("`evidence`: `off` keeps nothing, `always` also keeps the page of a node that is done", async () => {
  const silent = await show((await bench.run("silent", { credential_id })).id);
  assert.deepEqual(silent.steps[0]?.evidence, []);
  const always = await bench.run("always", { credential_id });
  assert.equal(always.status.status, "completed", always.detail ?? "");
  const done = await show(always.id);
  assert.deepEqual(
    done.steps[0]?.evidence.map(({ reason, has_picture: has }) => [reason, has]),
    [["done", true]],
  );
});
