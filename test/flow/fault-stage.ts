import assert from "node:assert/strict";
import { passwordLogin } from "../password-login.ts";
import { eventually } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { openTarget, type Seen, type Target } from "../documents/target.ts";
import type { TestDatabase } from "../database.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import type { ServiceProgram } from "../service-process.ts";
import { historyOf, recordHistory } from "./run-history.ts";

/** The records that each run of `whole` and `sends` writes into the target's books. */
export const RECORDS = 3;
/** A machine ten times slower than ours. */
const PATIENCE_MS = 120_000;
/** docs/operate.md, How long a run may wait: the bounds hold after the last fault, whatever that was. */
const GOES_ON_MS = 60_000;
const OTHERS_MS = 30_000;

/**
 * An installation for fault tests: `whole` passes through everything that a run can (login, reading, writing, a review that
 * approves itself after a second), `sends` only writes, `reads` only reads with a login, `breaks` fails. The target keeps the
 * books that decide.
 */
export interface FaultStage extends AsyncDisposable {
  readonly installation: Installation;
  readonly target: Target;
  readonly key: string;
  /** The credential of `whole` and `reads`; made once. */
  credential(caller: Caller): Promise<string>;
  trigger(caller: Caller, way: Way): Promise<string>;
  /** The row of each run, once all have ended. */
  ended(runs: readonly string[], timeoutMs?: number): Promise<readonly EndedRow[]>;
  /** The same when faults are over: all that was accepted ends within the bounds of docs/operate.md, and so does another account's run that comes now. */
  outlived(caller: Caller, runs: readonly string[]): Promise<readonly EndedRow[]>;
  /** What the target has seen of a run. */
  reads(run: string): readonly Seen[];
  orders(run: string): readonly Order[];
  /** Records in the books, of all runs. */
  written(): number;
  /** From now on reading takes until it is released. */
  holdReads(): () => void;
  /** From now on orders are taken and not answered until it is released. */
  holdOrders(): () => void;
  /** One end each, never back; nothing twice in the target's books; completed runs are whole. */
  check(caller: Caller, runs: readonly string[]): Promise<void>;
}

export type Way = "whole" | "sends" | "reads" | "breaks" | "plain";

export interface Order {
  readonly run: string;
  readonly number: string;
  readonly at: number;
  readonly token: string;
}

export interface EndedRow {
  readonly id: string;
  readonly status: string;
  readonly kind: string | null;
  readonly tookMs: number;
}

const STRATEGY = `strategy: strat_portal
account: acme
hosts: ['{TARGET}']
${passwordLogin(200)}`;

const ITEM_LIST = Array.from({ length: RECORDS }, (_, index) => ({ number: `n${index}` }));
const ITEMS = (credential: string) =>
  `- { id: items, type: http${credential}, request: { url: "{TARGET}/items", query: { run: "{{ $run.id }}" } }, records: items }`;
const SENT = `- { id: made, type: map, from: items, fields: { number: number, at: $millis() } }
- id: sent
  type: http
  for_each: made
  request:
    method: POST
    url: "{TARGET}/orders"
    json: { run: "{{ $run.id }}", number: "{{ number }}", at: "{{ at }}", token: "{{ $token }}" }
  verify: { request: { url: "{TARGET}/orders", query: { token: "{{ $token }}" } }, when: "$count(found) > 0" }`;
const out = (from: string) => `- { id: out, type: output, refKey: out, from: ${from} }`;
const GATE = "- { id: gate, type: review, from: sent, timeout: 1s, on_timeout: approve }";
const LOGIN = "credentials:\n  portal: { strategy: strat_portal }";
const HOSTS = "hosts: ['{TARGET}']";

const PLAIN = blueprint(
  "plain",
  `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }
${out("lines")}`,
);

const DOCUMENTS = [
  "account: acme\nallowed_origins: ['http://localhost:3000']",
  "account: neighbour",
  PLAIN.replace("account: acme", "account: neighbour"),
  STRATEGY,
  blueprint(
    "whole",
    [ITEMS(", credential: portal"), SENT, GATE, out("gate")].join("\n"),
    `${LOGIN}\n${HOSTS}`,
  ),
  blueprint("sends", [ITEMS(""), SENT, out("sent")].join("\n"), HOSTS),
  blueprint("reads", [ITEMS(", credential: portal"), out("items")].join("\n"), `${LOGIN}\n${HOSTS}`),
  blueprint("breaks", [ITEMS("").replace("/items", "/nowhere"), out("items")].join("\n"), HOSTS),
  PLAIN,
];

/**
 * `host`: the name under which Blueprints reach the target. `documents`: Blueprints of the test's own. `program`: the checkout that
 * makes the installation, in an empty database.
 */
export async function openFaultStage(
  environment: Readonly<Record<string, string>> = {},
  database: TestDatabase | null = null,
  {
    host = "127.0.0.1",
    documents = [],
    program,
  }: {
    readonly host?: string;
    readonly documents?: readonly string[];
    readonly program?: ServiceProgram | undefined;
  } = {},
): Promise<FaultStage> {
  await using opened = new AsyncDisposableStack();
  const target = opened.use(await openTarget());
  const installation = opened.use(await install(environment, database, { program }));
  await installation.apply(
    ...[...DOCUMENTS, ...documents].map((text) =>
      text.replaceAll("{TARGET}", target.url.replace("127.0.0.1", host)),
    ),
  );
  await recordHistory(installation.database.db);
  const [key, neighbourKey] = [
    await installation.createKey("acme"),
    await installation.createKey("neighbour"),
  ];
  let ordersGate = Promise.resolve();
  const { books, tokens } = keepBooks(target, async () => await ordersGate);
  let credential: Promise<string> | null = null;
  const credentialOf: FaultStage["credential"] = async (caller) =>
    await (credential ??= connect(caller, "strat_portal", {
      username: "ada",
      password: "a-portal-password",
    }));
  const kept = opened.move();
  return {
    installation,
    target,
    key,
    credential: credentialOf,
    trigger: async (caller, way) => {
      const needsLogin = way === "whole" || way === "reads";
      const body = needsLogin ? { credential_id: await credentialOf(caller) } : { rows: [] };
      const { status, text, body: accepted } = await caller.post(`/blueprints/${way}/trigger`, body);
      assert.equal(status, 202, text);
      return accepted.id;
    },
    ended: async (runs, timeoutMs = PATIENCE_MS) => await ended(installation, runs, timeoutMs),
    outlived: async (caller, runs) => {
      const rows = ended(installation, runs, GOES_ON_MS);
      const neighbour = caller.as(neighbourKey);
      const { status, text, body } = await neighbour.post("/blueprints/plain/trigger", { rows: [] });
      assert.equal(status, 202, text);
      const { body: run } = await neighbour.waitForRun(body.id, OTHERS_MS);
      assert.equal(run.status, "completed");
      return await rows;
    },
    reads: (run) => target.seen("GET /items").filter(({ query }) => query.get("run") === run),
    orders: (run) => books.get(run) ?? [],
    written: () => tokens.size,
    holdReads: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      kept.defer(() => resolve());
      target.on("GET /items", async () => {
        await promise;
        return { json: { items: ITEM_LIST } };
      });
      return resolve;
    },
    holdOrders: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      kept.defer(() => resolve());
      ordersGate = promise;
      return resolve;
    },
    check: async (caller, runs) => await check(installation, caller, books, runs),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

interface Books {
  readonly books: ReadonlyMap<string, readonly Order[]>;
  readonly tokens: ReadonlySet<string>;
}

/** The target's side: what it was told, by run. A look-up finds what is in the books. */
function keepBooks(target: Target, answering: () => Promise<void>): Books {
  const books = new Map<string, Order[]>();
  const tokens = new Set<string>();
  target.on("POST /login", { text: "welcome", headers: { "set-cookie": "sid=a-session; Path=/; HttpOnly" } });
  target.on("GET /items", { json: { items: ITEM_LIST } });
  target.on("POST /orders", async (seen) => {
    const order = JSON.parse(seen.body) as Order;
    books.set(order.run, [...(books.get(order.run) ?? []), order]);
    tokens.add(order.token);
    await answering();
    return { json: { number: order.number } };
  });
  target.on("GET /orders", (seen) => ({
    json: { found: tokens.has(seen.query.get("token") ?? "") ? [{}] : [] },
  }));
  return { books, tokens };
}

async function ended(
  installation: Installation,
  runs: readonly string[],
  timeoutMs: number,
): Promise<readonly EndedRow[]> {
  const { db } = installation.database;
  const read = async (): Promise<readonly (EndedRow & { readonly isOver: boolean; readonly at: string })[]> =>
    await db.query(
      `select id, status, error_kind as kind, ended_at is not null as "isOver", progress_step as at,
         (extract(epoch from ended_at - created_at) * 1000)::float8 as "tookMs"
       from run where id = any($1)`,
      [runs],
    );
  const isEnded = async (): Promise<readonly EndedRow[] | undefined> => {
    const rows = await read();
    return rows.length === runs.length && rows.every((row) => row.isOver) ? rows : undefined;
  };
  return await eventually(`${runs.length} runs have ended`, isEnded, timeoutMs).catch(
    async (error: unknown) => {
      const open = (await read()).filter((row) => !row.isOver);
      throw new Error(`${open.map((row) => `${row.id} stands at ${row.at}`).join("; ")}`, { cause: error });
    },
  );
}

async function check(
  installation: Installation,
  caller: Caller,
  books: ReadonlyMap<string, readonly Order[]>,
  runs: readonly string[],
): Promise<void> {
  const { db } = installation.database;
  const rows = await ended(installation, runs, 0);
  for (const { id, status } of rows) {
    assertOneEnd(id, await historyOf(db, id));
    const orders = books.get(id) ?? [];
    const numbers = orders.map(({ number }) => number).toSorted((a, b) => a.localeCompare(b));
    assert.equal(new Set(numbers).size, numbers.length, `${id} has written twice: ${numbers.join(", ")}`);
    if (status === "completed") await checkCompleted(caller, id, numbers);
  }
  const [left] = await db.query<{ count: number }>(
    `select count(*)::int as count from run_write write join run on run.id = write.run_id
     where run.id = any($1) and run.status = 'completed' and write.status not in ('done', 'ruled_out')`,
    [runs],
  );
  assert.equal(left?.count, 0, "a completed run knows what became of its writes");
}

/** Its results are there to the last byte, and every record that it should have written is in the books. */
async function checkCompleted(caller: Caller, id: string, numbers: readonly string[]): Promise<void> {
  const { status, text, body } = await caller.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`);
  assert.equal(status, 200, `${id}: ${text}`);
  if (numbers.length === 0) return;
  assert.deepEqual(numbers, ["n0", "n1", "n2"], id);
  assert.equal(body.results.out.totalRecords, RECORDS, id);
}

/** Spec, Blueprint run `status`: never back, and one end. */
export function assertOneEnd(id: string, history: readonly string[]): void {
  const statuses = history.map((state) => state.split("/", 1)[0] ?? "");
  const story = `${id}: ${history.join(", ")}`;
  assert.equal(statuses.filter((status) => /^(completed|failed|cancelled)$/.test(status)).length, 1, story);
  const ranks = statuses.map((status) => ["queued", "running"].indexOf(status));
  const before = ranks.slice(0, -1);
  assert.equal(ranks.at(-1), -1, story);
  assert.ok(!before.includes(-1), story);
  assert.deepEqual(
    before,
    before.toSorted((a, b) => a - b),
    story,
  );
}

/** Every fault test ends here, after its runs: what must hold whatever has happened. docs/decisions/0025. */
export async function afterFaults(stage: FaultStage): Promise<void> {
  await assertInvariants(stage.installation);
}

export const callerOf = (stage: FaultStage, service: RunningService): Caller =>
  openCaller(service.url, stage.key);

/** How long `before` may take: a machine that does ten other things starts four processes slowly. */
export const SETUP_MS = 400_000;

/** A stage with an API, in the test's own process, and the credential that its runs share; workers are the test's own. */
export async function openServedStage(
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly stage: FaultStage; readonly caller: Caller }> {
  const stage = await openFaultStage(environment);
  try {
    const caller = callerOf(stage, await stage.installation.serve({}, ["api"]));
    await stage.credential(caller);
    return { stage, caller };
  } catch (error) {
    await stage[Symbol.asyncDispose]();
    throw error;
  }
}
