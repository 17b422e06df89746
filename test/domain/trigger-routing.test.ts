import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fillSlots,
  missingMetadata,
  readCredentialIds,
  routeKey,
  routeTrigger,
  type BodyValue,
  type RoutingTable,
} from "#domain/trigger-routing.ts";

const TABLE: RoutingTable = {
  inputRefKeys: new Set(["period", "__proto__"]),
  metadata: [
    { name: "purchase_order", required: true, label: null },
    { name: "constructor", required: true, label: null },
    { name: "note", required: false, label: null },
  ],
};
const text = (value: string): BodyValue => ({ kind: "string", text: value });
const NULL: BodyValue = { kind: "json", text: "null", isNull: true, items: null };

test("Spec, Top-level key routing: the table, row by row", () => {
  const rows = {
    credential_id: "credentials",
    credential_ids: "credentials",
    run_name: "run_name",
    period: "input",
    __proto__x: "ignored",
    purchase_order: "metadata",
    constructor: "metadata",
    purchase_ordr: "ignored",
    Period: "ignored",
    toString: "ignored",
    "": "ignored",
  };
  for (const [key, route] of Object.entries(rows)) assert.equal(routeKey(key, TABLE), route, key);
  assert.equal(routeKey("__proto__", TABLE), "input");
});

test("an explicit null is an omitted key, and an unknown one is reported as ignored all the same", () => {
  const routed = routeTrigger(
    new Map([
      ["period", NULL],
      ["note", NULL],
      ["run_name", NULL],
      ["what", NULL],
    ]),
    TABLE,
  );
  assert.deepEqual([routed.inputs.size, routed.metadata.size, routed.runName], [0, 0, null]);
  assert.deepEqual(routed.ignoredKeys, ["what"]);
});

test("Spec, POST /blueprints/{blueprintKey}/trigger 2: the required metadata that is missing, `constructor` like any other name", () => {
  assert.deepEqual(missingMetadata(routeTrigger(new Map(), TABLE), TABLE), ["purchase_order", "constructor"]);
  const given = routeTrigger(
    new Map([
      ["purchase_order", text("")],
      ["constructor", NULL],
    ]),
    TABLE,
  );
  assert.deepEqual(missingMetadata(given, TABLE), ["constructor"]);
});

const ID = ["cred_0VbbSVg6WBpC9MeZzse1JVFUxCXX", "cred_0VbbSVg6WBpC9MeZzse1JVFUxCXY"] as const;

test("Spec, Top-level key routing: one id, a comma-separated list or a JSON list; spaces and repeats are tolerated", () => {
  assert.deepEqual(readCredentialIds(text(ID[0])).ids, [ID[0]]);
  assert.deepEqual(readCredentialIds(text(` ${ID[1]} , ${ID[0]},,${ID[1]}`)), {
    ids: [ID[1], ID[0]],
    malformed: null,
  });
  const list: BodyValue = { kind: "json", text: "", isNull: false, items: [ID[0], ID[1]] };
  assert.deepEqual(readCredentialIds(list).ids, [...ID]);
  assert.equal(readCredentialIds(text("cred_short")).malformed, "cred_short");
  assert.notEqual(readCredentialIds({ kind: "json", text: "7", isNull: false, items: null }).malformed, null);
});

const SLOTS = [
  { slot: "first", strategyId: "strat_a" },
  { slot: "other", strategyId: "strat_b" },
  { slot: "second", strategyId: "strat_a" },
];
const credential = (id: string, strategyId: string) => ({ id, strategyId });

test("slots fill in document order, credentials in the caller's order among those of the slot's strategy", () => {
  const given = [credential("b", "strat_b"), credential("a2", "strat_a"), credential("a1", "strat_a")];
  const { filled, problem } = fillSlots(SLOTS, given);
  assert.equal(problem, null);
  assert.deepEqual(
    filled.map((each) => [each.slot, each.credential.id]),
    [
      ["first", "a2"],
      ["other", "b"],
      ["second", "a1"],
    ],
  );
});

test("a missing credential and a surplus one are told; a Blueprint without slots ignores valid ones", () => {
  assert.match(fillSlots(SLOTS, [credential("a", "strat_a")]).problem ?? "", /strat_b.*"other"/);
  const surplus = [
    credential("b", "strat_b"),
    credential("a1", "strat_a"),
    credential("a2", "strat_a"),
    credential("c", "strat_c"),
  ];
  assert.match(fillSlots(SLOTS, surplus).problem ?? "", /Credential c does not fit any/);
  assert.deepEqual(fillSlots([], surplus), { filled: [], problem: null });
});
