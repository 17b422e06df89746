// docs/security.md promises something for each attacker, and names the test that would fail. Every citation of a test exists.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "../..");
const CITED = /`(test\/[\w./-]+\.ts)`/g;

test("each line of the threat table names a test", () => {
  const page = readFileSync(join(root, "docs/security.md"), "utf8");
  const [, table = ""] = page.split("## Against whom");
  const lines = table.split("\n## ", 1)[0]?.split("\n") ?? [];
  const rows = lines.filter((line) => line.startsWith("| ") && !line.startsWith("| attacker |"));
  assert.ok(rows.length >= 13, String(rows.length));
  const bare = rows.filter((line) => !/`test\/[\w./-]+\.ts`/.test(line));
  assert.deepEqual(bare, []);
});

test("every test that a page names is there", () => {
  const pages = [
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    ...globSync("docs/**/*.md", { cwd: root }),
  ];
  const missing = pages.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(CITED)]
      .map(([, path = ""]) => path)
      .filter((path) => !existsSync(join(root, path)))
      .map((path) => `${page}: ${path}`),
  );
  assert.deepEqual(missing, []);
});
