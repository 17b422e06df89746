import { parentPort } from "node:worker_threads";
import { guardedJsonata } from "#expressions/guarded-jsonata.ts";
import { hardenThread } from "#expressions/harden.ts";
import { must } from "#lib/assert.ts";

/** The expression thread's surroundings, with a look at what expressions left behind. */

const INTRINSICS = { Object, Array, Function, String, Number, RegExp, Promise, Error, Map, Date };

function fingerprint(): string {
  return Object.entries(INTRINSICS)
    .map(
      ([name, { prototype }]) =>
        `${name}:${Reflect.ownKeys(prototype).map(String).join()}:${Object.isFrozen(prototype)}`,
    )
    .join("\n");
}

const port = must(parentPort, "parentPort");
hardenThread({ charactersMax: 1_000_000, itemsMax: 100_000 });
const evaluate = await guardedJsonata({
  timeoutMs: 1_000,
  depthMax: 50_000,
  itemsMax: 100_000,
  charactersMax: 1_000_000,
});
const before = fingerprint();

port.on("message", ({ source, root }: { source: string; root: string }) => void probe(source, root));

async function probe(source: string, root: string): Promise<void> {
  const result = await evaluate(source, JSON.parse(root), {}, () => {});
  const empty: Record<string, unknown> = {};
  const isFrozen = !before.includes("false") && !Object.hasOwn(Object.prototype, "__proto__");
  port.postMessage({
    result,
    unchanged: isFrozen && fingerprint() === before,
    polluted: ["polluted", "a", "b"].some(
      (key) => empty[key] !== undefined || Reflect.get([], key) !== undefined,
    ),
  });
}
