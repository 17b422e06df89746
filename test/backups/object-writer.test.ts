import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ObjectWriter } from "#actions/backups/object-writer.ts";
import { openLocalStore } from "#blobs/local-store.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-objects-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const store = openLocalStore(folder);

const keyOf = (number: number): string => `inputs/acct_1/${String(number).padStart(24, "0")}`;
const textOf = (number: number): string => `${number} `.repeat(number * 1_000);

async function* inPieces(text: string): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < text.length; at += 65_536) yield Buffer.from(text.slice(at, at + 65_536));
}

test("objects of any size are stored whole, small ones several at once, and at most 16 beside a large one", async () => {
  let [underWay, most] = [0, 0];
  const counted: Pick<typeof store, "put"> = {
    put: async (key, bytes) => {
      most = Math.max(most, ++underWay);
      return await store.put(key, bytes).finally(() => underWay--);
    },
  };
  await using writer = new ObjectWriter(counted);
  for (let number = 0; number < 100; number++) await writer.put(keyOf(number), inPieces(textOf(number)));
  await writer.settle();
  for (let number = 0; number < 100; number++)
    assert.equal(readFileSync(join(folder, keyOf(number)), "utf8"), textOf(number));
  assert.ok(textOf(99).length > 262_144, "there was a large one");
  assert.ok(most > 2 && most <= 17, `${most} at once`);
});

test("a small object that can't be stored is told, at the latest when all are to be there", async () => {
  writeFileSync(join(folder, "inputs", "acct_2"), "no folder");
  await using writer = new ObjectWriter(store);
  await writer.put("inputs/acct_2/000000000000000000000001", inPieces("x"));
  // Others that end well do not hide it.
  const others = async (): Promise<void> => {
    for (let number = 200; number < 240; number++) await writer.put(keyOf(number), inPieces("y"));
    await writer.settle();
  };
  await assert.rejects(others(), /ENOTDIR|EEXIST/);
});
