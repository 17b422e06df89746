// What `npm run mutate` breaks: each kind of place is found, and a change changes one place.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { importGraph } from "../scripts/imports/graph.ts";
import { coveringTests } from "../scripts/mutate/covering-tests.ts";
import { EQUIVALENTS } from "../scripts/mutate/equivalents.ts";
import { failedTest, run } from "../scripts/mutate/run-tests.ts";
import { sample } from "../scripts/mutate/sample.ts";
import { applySite, findSites, KINDS, type MutationKind } from "../scripts/mutate/sites.ts";
import { parse } from "../scripts/mutate/syntax.ts";
import { readSources } from "../scripts/prose/sources.ts";
import { serverFolder } from "./server-folder.ts";
import { testInAll } from "./tiers.ts";

const DB = "src/db/runs/example.ts";

/** The changed texts of one kind. */
function changed(kind: MutationKind, text: string, file = DB): readonly string[] {
  return findSites(file, text)
    .filter((site) => site.kind === kind)
    .map((site) => applySite(text, site));
}

test("guards are removed and negated: those that end their function, and no others", () => {
  const text = `function f(a) { if (a > 1) throw new Error(); if (a) { g(); return 1; } if (a) g(); if (a) return 2; else g(); }`;
  assert.deepEqual(changed("guard removed", text), [
    text.replace("if (a > 1) throw new Error();", ";"),
    text.replace("if (a) { g(); return 1; }", ";"),
  ]);
  assert.deepEqual(changed("guard negated", text), [
    text.replace("if (a > 1)", "if (!(a > 1))"),
    text.replace("if (a) { g()", "if (!(a)) { g()"),
  ]);
});

test("an await is removed where the statement stands alone", () => {
  const text = `async function f() { await g(1); const a = await g(2); return await g(a); }`;
  assert.deepEqual(changed("await removed", text), [text.replace("await g(1)", "void g(1)")]);
});

test("audit entries, checks and redactions are removed", () => {
  const text = `async function f() { await recordAudit(tx, keys, event); requireFactor(caller, "lately"); required(1); return run.redact.text(a + b); }`;
  assert.deepEqual(changed("audit removed", text), [
    text.replace("await recordAudit(tx, keys, event);", ";"),
  ]);
  assert.deepEqual(changed("check removed", text), [text.replace(`requireFactor(caller, "lately");`, ";")]);
  assert.deepEqual(changed("redaction removed", text), [text.replace("run.redact.text(a + b)", "(a + b)")]);
});

test("a limit is ten times as high: a constant by its name, and each entry of the table of limits", () => {
  const text = `const RUNS_MAX = 5 * 1_000; const runs = 3; const table = { leaseMs: 7, name: "x" };`;
  assert.deepEqual(changed("limit times ten", text), [text.replace("5 * 1_000", "10 * (5 * 1_000)")]);
  assert.deepEqual(changed("limit times ten", text, "src/domain/limits.ts"), [
    text.replace("5 * 1_000", "10 * (5 * 1_000)"),
    text.replace("leaseMs: 7", "leaseMs: 10 * (7)"),
  ]);
});

test("terms of SQL are removed: each as far as it goes, and what stands between brackets with it", () => {
  const sql =
    "select id from run where account_id = $1 and (status = 'a' or (x = 1 and y = 2)) and ${HELD} order by id";
  const text = `const a = \`${sql}\`;`;
  const terms = [
    sql.replace("account_id = $1", "true"),
    sql.replace("and (status = 'a' or (x = 1 and y = 2))", ""),
    sql.replace(" and y = 2", " "),
    sql.replace("and ${HELD}", ""),
  ].map((each) => `const a = \`${each}\`;`);
  assert.deepEqual(changed("sql term removed", text).toSorted(), terms.toSorted());
  const between = "const a = `select 1 from run where x between 1 and 2`;";
  assert.deepEqual(changed("sql term removed", between), ["const a = `select 1 from run where true`;"]);
  assert.deepEqual(changed("sql term removed", 'const a = "delete from run where x = 1 and y = 2";'), [
    'const a = "delete from run where x = 1 ";',
    'const a = "delete from run where true and y = 2";',
  ]);
  assert.deepEqual(changed("sql term removed", text, "src/engine/example.ts"), []);
});

test("locks of SQL are removed", () => {
  const text = "const a = `select id from run order by id for no key update of run skip locked`;";
  assert.deepEqual(changed("sql lock removed", text), ["const a = `select id from run order by id`;"]);
});

test("in the program itself every kind has sites, each changes its file, and nearly all leave it readable", () => {
  const texts = new Map(readSources(`${import.meta.dirname}/..`).map(({ file, text }) => [file, text]));
  const files = [...texts].filter(([file]) => /^src\/(?:db|domain|engine|actions)\/.*\.ts$/.test(file));
  const sites = files.flatMap(([file, text]) => findSites(file, text));
  assert.deepEqual(new Set(sites.map(({ kind }) => kind)), new Set(KINDS));
  const some = sample(sites, "a seed", 200);
  assert.equal(new Set(some).size, 200);
  for (const site of some) {
    const text = texts.get(site.file) ?? "";
    const after = applySite(text, site);
    assert.notEqual(after, text);
    assert.equal(after.length - text.length, site.replacement.length - (site.end - site.start));
    assert.ok(parse(site.file, after), `${site.file}:${site.line} ${site.kind}`);
  }
});

test("a sample is the same for the same seed, another for another, and goes over kinds and folders", () => {
  const sites = ["src/db/a.ts", "src/lib/b.ts", "src/api/c.ts"].flatMap((file) =>
    Array.from({ length: 20 }, (_, line) => ({
      file,
      kind: KINDS[line % 2] ?? "guard removed",
      line,
      start: line,
      end: line + 1,
      replacement: ";",
    })),
  );
  const names = (seed: string): readonly string[] =>
    sample(sites, seed, 6).map(({ file, kind }) => `${file} ${kind}`);
  assert.deepEqual(names("one"), names("one"));
  assert.notDeepEqual(sample(sites, "one", 6), sample(sites, "two", 6));
  assert.equal(new Set(names("one")).size, 6);
});

test("the tests that reach a file come first when they are about it, and cost no more than they may", () => {
  const texts = new Map([
    ["src/db/lines.ts", "export function joinQueue() {}"],
    ["src/all.ts", `import "./db/lines.ts";`],
    ["test/far.test.ts", `import "../src/all.ts";`],
    ["test/dear.test.ts", `import "../src/all.ts";`],
    ["test/db/lines.test.ts", `import "../../src/db/lines.ts";\njoinQueue();`],
    ["test/other.test.ts", ""],
  ]);
  const tests = new Map([...texts].filter(([file]) => file.startsWith("test/")));
  const times = new Map([
    ["test/far.test.ts", 1],
    ["test/dear.test.ts", 30],
  ]);
  const found = coveringTests(
    { file: "src/db/lines.ts", exports: ["joinQueue"] },
    tests,
    importGraph(texts, {}),
    {
      times,
      budget: 10,
    },
  );
  assert.deepEqual(
    found.map(({ file }) => file),
    ["test/db/lines.test.ts", "test/far.test.ts"],
  );
});

test("what killed a change is the first test that the report names, and its file", () => {
  const report =
    "✔ one (1ms)\n  ✖ a promise is kept (12.5ms)\n✖ test/a.test.ts (20ms)\n✖ failing tests:\n\ntest at test/a.test.ts:55:1\n";
  assert.deepEqual(failedTest(report), { by: "a promise is kept", file: "test/a.test.ts" });
  assert.deepEqual(failedTest("nothing"), { by: "no test came to its end", file: null });
});

test("when the script is told to end, what runs for a change ends before anything is removed under it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-mutate-"));
  const files = { up: join(folder, "up"), ended: join(folder, "ended") };
  const write = (file: string): string => `require("node:fs").writeFileSync(${JSON.stringify(file)}, "");`;
  const program = `process.on("SIGTERM", () => { ${write(files.ended)} process.exit(); });
    setInterval(() => {}, 1_000); ${write(files.up)}`;
  const interruption = new AbortController();
  const running = run(folder, ["--eval", program], {
    environment: {},
    timeoutMs: 60_000,
    signal: interruption.signal,
  });
  const ended = assert.rejects(running, /told to end/);
  while (!existsSync(files.up)) await sleep(10);
  interruption.abort(new Error("told to end"));
  await ended;
  assert.ok(existsSync(files.ended));
  rmSync(folder, { recursive: true });
});

testInAll(
  "that what runs for a change ends (above)",
  "a script that is told to end leaves neither its server nor its copy of the repository behind",
  { timeout: 120_000 },
  async () => {
    const before = new Set(listFolders());
    const args = [
      "scripts/mutate.ts",
      "--seed",
      "told to end",
      "--count",
      "1",
      "--file",
      "src/lib/assert.ts",
    ];
    const script = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], {
      cwd: join(import.meta.dirname, ".."),
      stdio: "ignore",
    });
    const exited = once(script, "exit");
    const own = (): readonly string[] => listFolders().filter((folder) => !before.has(folder));
    while (!own().some((folder) => existsSync(join(folder, "postgres/postmaster.pid")))) await sleep(50);
    assert.equal(own().length, 2, "a folder of the server, and the copy");
    script.kill("SIGTERM");
    assert.deepEqual(await exited, [1, null]);
    assert.deepEqual(own(), []);
  },
);

const listFolders = (): readonly string[] =>
  [...new Set([tmpdir(), serverFolder()])].flatMap((parent) =>
    readdirSync(parent)
      .filter((name) => name.startsWith("latchkey-mutations-"))
      .map((name) => join(parent, name)),
  );

test("each listed equivalent is still a site, and has a reason", () => {
  for (const { file, kind, line, reason } of EQUIVALENTS) {
    const text = readSources(`${import.meta.dirname}/..`).find((source) => source.file === file)?.text ?? "";
    const there = findSites(file, text).filter((site) => site.kind === kind);
    assert.ok(
      there.some((site) => text.split("\n")[site.line - 1]?.includes(line)),
      `${file}: ${line}`,
    );
    assert.ok(reason.length > 20, `${file}: ${line}`);
  }
});
