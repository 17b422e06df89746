// What operators have typed and not sent: what survives, what does not, and for whom.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { openDrafts, type DraftStorage } from "../../ui/api/drafts.ts";

/** As a tab's own storage, which a reload leaves. */
function newStorage(bytesMax = Infinity): DraftStorage & { readonly values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    get length() {
      return values.size;
    },
    key: (index) => [...values.keys()][index] ?? null,
    getItem: (name) => values.get(name) ?? null,
    setItem: (name, text) => {
      if (text.length > bytesMax) throw new Error("QuotaExceededError");
      values.set(name, text);
    },
    removeItem: (name) => void values.delete(name),
  };
}

let storage = newStorage();
const open = (of = storage) => {
  const drafts = openDrafts(of, () => {});
  drafts.ownBy("op_ana");
  return drafts;
};
const KEY = ["document", "blueprint", "acme", "orders"];

beforeEach(() => {
  storage = newStorage();
});

test("a draft survives a reload and a sign-in of the same operator", () => {
  const drafts = open();
  drafts.write(KEY, { text: "typed" });
  assert.deepEqual(drafts.read(KEY), { text: "typed" });
  assert.equal(drafts.read(KEY), drafts.read(KEY), "one object, or React renders again and again");
  drafts.flush();
  const reloaded = open();
  assert.deepEqual(reloaded.read(KEY), { text: "typed" });
  reloaded.ownBy("op_ana");
  assert.deepEqual(reloaded.read(KEY), { text: "typed" });
  assert.equal(reloaded.read(["document", "blueprint", "acme", "others"]), undefined);
});

test("another operator's sign-in, a sign-out and the owner remove it, also from the storage", () => {
  for (const end of [
    (drafts: ReturnType<typeof open>) => drafts.ownBy("op_bob"),
    (drafts: ReturnType<typeof open>) => drafts.clear(),
    (drafts: ReturnType<typeof open>) => drafts.remove(KEY),
  ]) {
    const first = open();
    first.write(KEY, 1);
    first.flush();
    storage.setItem("of something else", "stays");
    const drafts = open();
    assert.equal(drafts.isAny(), true);
    end(drafts);
    assert.deepEqual([...storage.values.keys()], ["of something else"]);
    assert.deepEqual([drafts.read(KEY), drafts.isAny(), open().read(KEY)], [undefined, false, undefined]);
  }
});

test("a draft that the storage has no room for stays in memory, and leaves no older copy", () => {
  storage = newStorage(20);
  const drafts = open();
  drafts.write(KEY, "short");
  drafts.flush();
  drafts.write(KEY, "x".repeat(100));
  drafts.flush();
  assert.equal(drafts.read(KEY), "x".repeat(100));
  assert.equal(open().read(KEY), undefined);
});

test("those who show a draft are told when it changes", () => {
  const drafts = open();
  let told = 0;
  const stop = drafts.subscribe(() => told++);
  drafts.write(KEY, 1);
  drafts.remove(KEY);
  stop();
  drafts.write(KEY, 2);
  assert.equal(told, 2);
});
