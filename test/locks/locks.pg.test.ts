import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inTier, tier } from "../tiers.ts";
import { findOpenings } from "./find-openings.ts";
import { NOT_EXPLORED } from "./not-explored.ts";
import { Orders } from "./orders.ts";
import { openStage, tell, type Outcome, type Pair, type Stage } from "./stage.ts";
import type { Scene } from "./scene.ts";
import type { Transaction } from "./transaction.ts";
import { TRANSACTIONS } from "./transactions.ts";

const root = join(import.meta.dirname, "../..");
/** Besides those in which each holds its rows to the end: where there are more, chance picks by the seed. */
const ORDERS_MAX = Number(process.env["LATCHKEY_LOCK_ORDERS"] ?? (tier === "fast" ? 2 : 4));
const SEED = Number(process.env["LATCHKEY_LOCK_SEED"] ?? 1);
/** Pairs whose name matches. */
const ONLY = new RegExp(process.env["LATCHKEY_LOCK_PAIR"] ?? "");

/** One pair of each kind of meeting: on a run, on a credential, on an account, on a key. */
const FAST: readonly string[] = [
  "cancel a parked run beside reject a review",
  "trigger with a key beside delete a credential",
  "cancel a queued run beside admit runs",
  "trigger with a key beside trigger with a key",
  "take over from the dead beside leave as a worker",
  "leave as a worker beside release orphans",
];

let stage: Stage;

before(async () => {
  stage = await openStage();
});

after(async () => await stage?.[Symbol.asyncDispose]());

const nameOf = (pair: Pair): string => pair.map(({ name }) => name).join(" beside ");

const pairs = inTier(
  TRANSACTIONS.flatMap((a, at) => TRANSACTIONS.slice(at).map((b): Pair => [a, b])),
  (pair) => FAST.includes(nameOf(pair)),
);

/** Carries out the pair's orders. Gives the stories of those that went wrong. */
async function explore(pair: Pair): Promise<readonly string[]> {
  const wrong: string[] = [];
  let [done, waits] = [0, 0];
  const note = (outcome: Outcome): Outcome => {
    done++;
    waits += outcome.waits;
    if (outcome.problems.length > 0) wrong.push(tell(pair, outcome));
    return outcome;
  };
  for (const holds of [0, 1] as const) note(await stage.carryOut(pair, { holds }));
  if (pair.every(({ takesSeveral }) => takesSeveral === true)) note(await stage.carryOutByRows(pair, SEED));
  const orders = new Orders(SEED);
  // Of two that want none of each other's rows, every order ends alike.
  const wanted = waits > 0 ? ORDERS_MAX : 0;
  for (let count = 0; count < wanted; count++) {
    const order = orders.take();
    if (order === undefined) break;
    orders.learn(order, note(await stage.carryOut(pair, order)).steps);
  }
  if (process.env["LATCHKEY_LOCK_STORY"] !== undefined)
    console.error(`${nameOf(pair)}: ${done} orders, ${orders.left} known besides, ${waits} waits`);
  return wrong;
}

test("the fast tier has its pairs", () => {
  const names = pairs.map(nameOf);
  assert.deepEqual(
    FAST.filter((name) => !names.includes(name)),
    [],
  );
});

test("what opens a transaction is explored, or says why not", () => {
  const openings = findOpenings(root, ["actions", "db", "engine"]);
  const explored = new Set(TRANSACTIONS.flatMap(({ opens }) => opens));
  const missing = openings.filter((each) => !explored.has(each) && NOT_EXPLORED[each] === undefined);
  assert.deepEqual(missing, [], "add them to transactions.ts, or to not-explored.ts with a reason");
  const gone = [...explored, ...Object.keys(NOT_EXPLORED)].filter((each) => !openings.includes(each));
  assert.deepEqual(gone, [], "these open no transaction any more");
});

/** Locks two runs, one after the other. */
const lockTwo = (name: string, pick: (scene: Scene) => readonly [string, string]): Transaction => ({
  name,
  opens: [],
  run: async ({ db, scene }) =>
    await db.transaction(async (tx) => {
      for (const id of pick(scene)) await tx.query("select 1 from run where id = $1 for update", [id]);
    }),
});
const [HELD_FIRST, LOST_FIRST] = [
  lockTwo("held first", ({ held, lost }) => [held.run.id, lost.run.id]),
  lockTwo("lost first", ({ held, lost }) => [lost.run.id, held.run.id]),
];
const lockAll = (direction: "asc" | "desc"): Transaction => ({
  name: direction,
  opens: [],
  run: async ({ db }) =>
    await db.query(`select 1 from (select id from run order by id ${direction} for update) runs`),
});

test("a deadlock between two transactions, and between two statements, is found", async () => {
  assert.match((await stage.carryOut([HELD_FIRST, LOST_FIRST], [0, 1])).problems.join(), /deadlock detected/);
  const { problems, waits } = await stage.carryOut([HELD_FIRST, HELD_FIRST], { holds: 0 });
  assert.deepEqual(problems, []);
  assert.ok(waits > 0);
  assert.match(
    (await stage.carryOutByRows([lockAll("asc"), lockAll("desc")], 3)).problems.join(),
    /deadlock detected/,
  );
  assert.deepEqual((await stage.carryOutByRows([lockAll("asc"), lockAll("asc")], 3)).problems, []);
});

test("a wait without a limit and rows that contradict each other are found", async () => {
  const careless: Transaction = {
    name: "careless",
    opens: [],
    run: async ({ db, scene }) =>
      await db.transaction(
        async (tx) => await tx.query("delete from review where run_id = $1", [scene.parked.run]),
        { lockTimeoutMs: 0 },
      ),
  };
  const { problems } = await stage.carryOut([careless, HELD_FIRST], []);
  assert.match(problems.join("\n"), /careless: .*lock_timeout is 0 ms\n.*run_parked_unasked/s);
});

for (const pair of pairs) {
  const name = nameOf(pair);
  if (!ONLY.test(name)) continue;
  test(
    `${name}: no order of their statements ends in a deadlock, an error or broken rows`,
    { timeout: 600_000 },
    async () => {
      const wrong = await explore(pair);
      if (wrong.length > 0) assert.fail(`${wrong.length} orders:\n  ${wrong.join("\n  ")}`);
    },
  );
}
