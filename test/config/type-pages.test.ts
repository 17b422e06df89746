// docs/decisions/0031: what each type takes, said once, in its schema.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { nodeTypes } from "#nodes/registry.ts";
import { loginTypes } from "#strategies/registry.ts";
import { check } from "./problems-of.ts";

const DOCS = join(import.meta.dirname, "../../docs");
const read = (path: string): string => readFileSync(join(DOCS, path), "utf8");

for (const [folder, index, types] of [
  ["nodes", "blueprints.md", nodeTypes],
  ["logins", "strategies.md", loginTypes],
] as const) {
  test(`docs/${folder} has a page for every type and no other, each is linked, its example is accepted, its keys are described`, () => {
    const pages = readdirSync(join(DOCS, folder));
    assert.deepEqual(pages.toSorted(), [...types.keys()].map((type) => `${type}.md`).toSorted());
    for (const file of pages) {
      assert.ok(read(index).includes(`(${folder}/${file})`), file);
      const page = read(join(folder, file));
      const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map((match) => match[1] ?? "");
      assert.equal(examples.length, 1, file);
      const { checked, problems } = check([
        { file: "account", text: "account: acme\n" },
        { file, text: examples[0] ?? "" },
      ]);
      assert.deepEqual(problems, []);
      assert.equal(checked.length, 2);
      const rows = page.split("\n").filter((line) => line.startsWith("| `"));
      assert.deepEqual(
        rows.filter((row) => / \| {1,2}\|$/.test(row)),
        [],
        `${file}: keys without a description`,
      );
      assert.match(page, /^## Errors$/m);
    }
  });
}
