// docs/audit.md, "Checking an export offline": its example follows its rules, and a change of any member breaks them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkExport, hashOfLine, isCheckpoint } from "./offline.ts";

const page = readFileSync(new URL("../../docs/audit.md", import.meta.url), "utf8");
const examples = [...page.matchAll(/```json\n([^`]+)```/g)].map(([, text]) =>
  (text ?? "")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line)),
);
const [lines = [], [checkpoint] = []] = examples;

test("the page's example export and its checkpoint are right by the page's own rules", () => {
  assert.equal(lines.length, 3);
  assert.deepEqual(checkExport(lines, lines[0].public_key), []);
  assert.ok(isCheckpoint(checkpoint, lines[0].public_key));
  assert.equal(checkpoint.head, hashOfLine(lines[2]));
});

test("a change of any member of a line is found by them", () => {
  for (const member of Object.keys(lines[1])) {
    const changed = { ...lines[1], [member]: member === "sequence" ? 7 : `${lines[1][member]}0` };
    assert.notDeepEqual(checkExport([lines[0], changed, lines[2]], lines[0].public_key), [], member);
  }
  assert.notDeepEqual(checkExport(lines.slice(0, 2), lines[0].public_key), [], "a missing tail");
  assert.notDeepEqual(checkExport([lines[0], lines[2], lines[1]], lines[0].public_key), [], "swapped");
});

test("every action is described on the page", async () => {
  const { AUDIT_ACTIONS } = await import("#domain/audit-actions.ts");
  for (const action of AUDIT_ACTIONS) assert.ok(page.includes(`\`${action}\``), action);
});
