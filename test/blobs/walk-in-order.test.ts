import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { walkInOrder } from "#blobs/walk-in-order.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-walk-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("a folder that is too large for memory is read in parts: each file once, in order, from any place on", async () => {
  const names = ["a", "a-b", "a.json", "a0", "ab", "b", "c-", "c.", "c0", "d"];
  const files = names.flatMap((name) => [`${name}.x`, `${name}/${name}`, `${name}/deep/1`, `${name}/deep/2`]);
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), "");
  }
  mkdirSync(join(folder, "empty"));
  const inOrder = files.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  const walk = async (most: number, from?: string): Promise<readonly string[]> =>
    await Array.fromAsync(walkInOrder(folder, "", from, most));
  for (const most of [1, 2, 3, 100]) {
    assert.deepEqual(await walk(most), inOrder, `${most} names at a time`);
    for (const [index, file] of inOrder.entries())
      assert.deepEqual(await walk(most, file), inOrder.slice(index + 1), `${most} after ${file}`);
  }
  assert.deepEqual(await Array.fromAsync(walkInOrder(folder, "never/there/")), []);
});
