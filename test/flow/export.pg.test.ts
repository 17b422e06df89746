// The operator's downloads: `latchkey runs results`.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parse } from "csv-parse/sync";
import readExcel from "read-excel-file/node";
import { moveClock } from "../clock.ts";
import { openCaller, type Caller } from "../caller.ts";
import { latchkey } from "../cli/program.ts";
import { install } from "../service.ts";
import { testInAll } from "../tiers.ts";
import { runHousekeeping } from "./run-history.ts";
import { startTarget, type Target } from "./target.ts";

const BLUEPRINT = `blueprint: sheet
account: acme
retention: 1h
hosts: [TARGET]
nodes:
  - { id: which, type: input, refKey: which, accepts: text }
  - id: read
    type: http
    request: { method: GET, url: "TARGET/items", query: { which: "{{ $inputs.which }}" } }
    paginate: { cursor: next, param: cursor }
    records: items
  - { id: out, type: output, refKey: items, from: read }
  - id: parts
    type: output
    refKey: parts
    handles: { some: { from: read, where: n < 2 }, other: { from: read, where: n >= 2 } }`;

const FEW = [
  { n: -1, text: "=cmd|' /C calc'!A0", nested: { a: [1, "x"] } },
  { n: 1, later: 'two\nlines, "quoted"', text: "ünïcødé" },
  { n: 2, text: "nul \u0000, bell \u0007", flag: true, big: 123456789012345680, is_valid: "own" },
];
/** A page is under the 10 MB of a response. */
const PAGES = Number(process.env["LATCHKEY_EXPORT_PAGES"] ?? "10");
const PAGE_ITEMS = 10_000;

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;
const folder = mkdtempSync(join(tmpdir(), "latchkey-export-"));

before(async () => {
  target = await startTarget(({ query }) => {
    if (query.get("which") === "few") return { body: { items: FEW, next: null } };
    const page = Number(query.get("cursor") ?? "0");
    const items = Array.from({ length: PAGE_ITEMS }, (_, index) => ({
      n: page * PAGE_ITEMS + index,
      text: `item ${index} of page ${page}, and then some more so that it has a usual length`,
    }));
    return { body: { items, next: page + 1 < PAGES ? String(page + 1) : null } };
  });
  installation = await install();
  await installation.apply("account: acme", BLUEPRINT.replaceAll("TARGET", target.url));
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function runOf(which: string): Promise<string> {
  const { body } = await caller.post("/blueprints/sheet/trigger", { which });
  assert.equal((await caller.waitForRun(body.id, 100_000)).body.status, "completed");
  return body.id;
}

const file = (name: string): string => join(folder, name);

test(
  "the records as NDJSON, CSV and XLSX, read by other parsers; formulas are texts",
  { timeout: 600_000 },
  async () => {
    const id = await runOf("few");
    const { body } = await caller.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`);
    const ndjson = await installation.command("runs", "results", id, "--key", "items");
    assert.equal(ndjson.code, 0, ndjson.stderr);
    assert.deepEqual(
      ndjson.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
      body.results.items.records,
    );

    const csv = await installation.command(
      ...["runs", "results", id, "--key", "items", "--format", "csv", "--bom", "--output", file("few.csv")],
    );
    assert.equal(csv.code, 0, csv.stderr);
    assert.equal(statSync(file("few.csv")).mode & 0o777, 0o600);
    const again = await installation.command(
      "runs",
      "results",
      id,
      "--key",
      "items",
      "--output",
      file("few.csv"),
    );
    assert.deepEqual([again.code, again.stderr.includes("few.csv already exists")], [1, true]);
    const text = readFileSync(file("few.csv"), "utf8");
    assert.ok(text.startsWith("\uFEFF"));
    const headings = ["n", "text", "nested", "later", "flag", "big", "is_valid", "_is_valid", "errors"];
    assert.deepEqual(parse(text, { bom: true, record_delimiter: "\r\n" }), [
      headings,
      ["-1", "'=cmd|' /C calc'!A0", '{"a":[1,"x"]}', "", "", "", "", "true", ""],
      ["1", "ünïcødé", "", 'two\nlines, "quoted"', "", "", "", "true", ""],
      ["2", "nul \u0000, bell \u0007", "", "", "true", "123456789012345680", "own", "true", ""],
    ]);

    const xlsx = await installation.command(
      ...["runs", "results", id, "--key", "items", "--format", "xlsx", "--output", file("few.xlsx")],
    );
    assert.equal(xlsx.code, 0, xlsx.stderr);
    const [sheet] = await readExcel(file("few.xlsx"), { trim: false });
    assert.deepEqual(sheet?.data, [
      headings,
      [-1, "=cmd|' /C calc'!A0", '{"a":[1,"x"]}', null, null, null, null, true, null],
      [1, "ünïcødé", null, 'two\nlines, "quoted"', null, null, null, true, null],
      [2, "nul \uFFFD, bell \uFFFD", null, null, true, "123456789012345680", "own", true, null],
    ]);

    const part = await installation.command("runs", "results", id, "--key", "parts", "--handle", "other");
    assert.deepEqual(
      part.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).data.n),
      [2],
    );
  },
);

test("what can't be written is refused with the remedy, and leaves no file", async () => {
  const id = await runOf("few");
  const refused = async (says: RegExp, code: number, ...arguments_: string[]): Promise<void> => {
    const result = await installation.command("runs", "results", ...arguments_, "--output", file("none"));
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stderr, says);
    assert.ok(!existsSync(file("none")) && !existsSync(file("none.part")));
  };
  await refused(/has 3 results. Choose one with --key: items, parts\.some, parts\.other/, 1, id);
  await refused(/has no result nothing. It has: items/, 1, id, "--key", "nothing");
  await refused(/There is no run run_none/, 1, "run_none");
  await refused(/--handle needs --key/, 2, id, "--handle", "other");
  await refused(/--bom works only with/, 2, id, "--key", "items", "--bom");
  await moveClock(installation.database.db, "61 minutes");
  await runHousekeeping(installation.database.db);
  await refused(/has been purged/, 1, id, "--key", "items");
  await moveClock(installation.database.db, "0");
});

testInAll(
  "the same forms with few records",
  "a hundred thousand records in every form, under a heap that could not hold them",
  { timeout: 600_000 },
  async () => {
    const id = await runOf("many");
    const sizes: Record<string, number> = {};
    for (const format of ["ndjson", "csv", "xlsx"]) {
      const out = file(`many.${format}`);
      // The records are 15 MB of text, and as objects several times that; the program without them needs 40 MB.
      const result = await latchkey(
        ["runs", "results", id, "--key", "items", "--format", format, "--output", out],
        { ...installation.environment, NODE_OPTIONS: "--max-old-space-size=64" },
      );
      assert.equal(result.code, 0, `${format}: ${result.stderr.slice(-2_000)}`);
      sizes[format] = statSync(out).size;
    }
    const lines = readFileSync(file("many.ndjson"), "utf8").trimEnd().split("\n");
    assert.equal(lines.length, PAGES * PAGE_ITEMS);
    assert.equal(JSON.parse(lines.at(-1) ?? "").data.n, PAGES * PAGE_ITEMS - 1);
    const csv = readFileSync(file("many.csv"), "utf8").trimEnd().split("\r\n");
    assert.equal(csv.length, PAGES * PAGE_ITEMS + 1);
    assert.match(
      csv.at(-1) ?? "",
      new RegExp(`^${PAGES * PAGE_ITEMS - 1},"item 9999 of page ${PAGES - 1},.*",true,$`),
    );
    assert.ok((sizes["xlsx"] ?? 0) > 1_000_000);
  },
);
