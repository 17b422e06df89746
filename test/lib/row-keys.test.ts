// What a signature of a row covers: all that it says, and of which row.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import type { DecidingRow } from "#lib/row-keys.ts";

const keys = openSigning(readSigningKey(generateSigningKey())).rows;
const row: DecidingRow = {
  kind: "operator",
  key: ["op_1"],
  serial: 7,
  values: ["a", "b", null, true, Buffer.from([1])],
};

test("a row verifies under its own key, as it was signed", () => {
  assert.equal(keys.isGenuine(row, keys.mac(row)), true);
  assert.equal(keys.isGenuine(row, keys.mac(row).subarray(0, 31)), false);
  assert.equal(keys.isGenuine(row, Buffer.alloc(0)), false);
  assert.equal(openSigning(readSigningKey(generateSigningKey())).rows.isGenuine(row, keys.mac(row)), false);
});

const OTHERS: Readonly<Record<string, Partial<DecidingRow>>> = {
  "another kind": { kind: "vault_key" },
  "another key": { key: ["op_2"] },
  "a key of two parts": { key: ["op", "1"] },
  "another serial": { serial: 8 },
  "a value that moved": { values: ["ab", "", null, true, Buffer.from([1])] },
  "values in one": { values: ['a","b', null, true, Buffer.from([1])] },
  "nothing, and a text that says so": { values: ["a", "b", "null", true, Buffer.from([1])] },
  "a list, and its text": { values: [["a"], "b", null, true, Buffer.from([1])] },
  "a text of the same bytes": { values: ["a", "b", null, true, "AQ=="] },
  "a value less": { values: ["a", "b", null, true] },
  "a value more": { values: ["a", "b", null, true, Buffer.from([1]), null] },
};

for (const [what, other] of Object.entries(OTHERS)) {
  test(`no row has the signature of ${what}`, () => {
    assert.equal(keys.isGenuine({ ...row, ...other }, keys.mac(row)), false);
  });
}
