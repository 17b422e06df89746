import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { checkConfig } from "#actions/config/check-config.ts";
import { readDocuments } from "#actions/config/read-documents.ts";
import { readAccount } from "#domain/account.ts";
import { readBlueprint } from "#domain/blueprint.ts";
import { readStrategy } from "#domain/strategy.ts";
import { tier } from "../tiers.ts";
import { nothingKnown } from "./problems-of.ts";

/** Each run of the fast tier tries others. */
const RUNS = tier === "fast" ? 200 : 1_000;

type Part = { [key: string | number]: unknown };

const documents = ["account", "strategy", "blueprint"].map((name) => {
  const text = readFileSync(new URL(`fixtures/built/${name}.yaml`, import.meta.url), "utf8");
  return JSON.stringify(readDocuments([{ file: name, text }]).documents[0]?.value);
});

/** Every place of a document but its root. */
function placesOf(value: unknown): readonly { readonly parent: Part; readonly key: string | number }[] {
  if (typeof value !== "object" || value === null) return [];
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return keys.flatMap((key) => [{ parent: value as Part, key }, ...placesOf((value as Part)[key])]);
}

const junk = fc.oneof(
  fc.constantFrom(
    "",
    "a",
    "{{",
    "{{ $x }}",
    "$",
    "https://x",
    "//x",
    "constructor",
    "http",
    "output",
    "parse",
  ),
  fc.constantFrom<unknown>(null, 0, -1, true, [], {}, [[]], [{}], { a: {} }, ["a", 1]),
  fc.jsonValue(),
);
const change = fc.record({ place: fc.nat(), value: junk, remove: fc.boolean() });

test(
  "whatever stands in a document, the check never throws, and what it accepts can be read",
  { timeout: 60_000 },
  () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 }), fc.array(change, { minLength: 1, maxLength: 3 }), (which, changes) => {
        const changed: unknown = JSON.parse(documents[which] ?? "");
        for (const { place, value, remove } of changes) {
          const places = placesOf(changed);
          const at = places[place % Math.max(1, places.length)];
          if (at === undefined) break;
          if (remove) delete at.parent[at.key];
          else at.parent[at.key] = structuredClone(value);
        }
        const texts = documents.map((text, index) => (index === which ? JSON.stringify(changed) : text));
        const read = readDocuments(texts.map((text, index) => ({ file: String(index), text })));
        const { checked, problems } = checkConfig(read.documents, nothingKnown);
        for (const { kind, document } of checked) {
          ({ account: readAccount, strategy: readStrategy, blueprint: readBlueprint })[kind](document);
        }
        for (const { message, line, column } of problems) {
          assert.ok(message.length < 700 && line > 0 && column > 0);
          assert.doesNotMatch(message, /undefined|\[object/);
        }
      }),
      { numRuns: RUNS },
    );
  },
);
