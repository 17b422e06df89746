import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AccountQuotas } from "#actions/runs/account-quotas.ts";
import { checkInvariants } from "#actions/upkeep/check-invariants.ts";
import { openTombstones } from "#actions/credentials/tombstones.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import { openPool, type Database } from "#db/connection/pool.ts";
import { freeOrphanedRuns } from "#db/runs/workers.ts";
import { guardRows, settleRows } from "#db/signing/signed-rows.ts";
import { must } from "#lib/assert.ts";
import { openLog } from "#lib/log.ts";
import { TokenBuckets } from "#lib/token-bucket.ts";
import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import { openVault } from "#vault/vault.ts";
import { cloneTestDatabase } from "../database.ts";
import { NO_NEWS } from "../no-news.ts";
import { install } from "../service.ts";
import { HeldSide } from "./held-side.ts";
import { SeededRandom } from "../simulator/seeded-random.ts";
import {
  describe,
  follow,
  followRows,
  sessionName,
  Watch,
  type HeldRows,
  type HoldOrder,
  type Order,
  type Step,
} from "./orders.ts";
import { plantScene, type Scene } from "./scene.ts";
import type { Parts, Transaction } from "./transaction.ts";

/** What an order has led to. */
export interface Outcome {
  readonly steps: readonly Step[];
  /** Sentences: what must not be. Empty: all is well. */
  readonly problems: readonly string[];
  /** How often a statement waited for a lock of the other side. */
  readonly waits: number;
}

export type Pair = readonly [Transaction, Transaction];

/** A scene from which every order of two transactions begins anew. */
export interface Stage extends AsyncDisposable {
  /** Statement by statement, in this order. */
  carryOut(pair: Pair, order: Order | HoldOrder): Promise<Outcome>;
  /** All at once, but every run's row is held and then let go, one after the other, in an order by the seed. */
  carryOutByRows(pair: Pair, seed: number): Promise<Outcome>;
}

/** The server looks for deadlocks after this time of waiting; its own default is a second. */
const DEADLOCK_MS = 10;
export async function openStage(): Promise<Stage> {
  await using opened = new AsyncDisposableStack();
  const installation = opened.use(await install());
  const { dataFolder, database } = installation;
  const signing = openSigning(readSigningKey(readFileSync(join(dataFolder, "signing.key"), "utf8")));
  const scene = await plantScene(installation, signing);
  await settleRows(database.db);
  // A template has no connections.
  await database.db.end();
  const template = new URL(database.connectionString).pathname.slice(1);
  const kept = opened.move();
  const prepared = { template, dataFolder, signing, scene };
  const broken = await onClone(prepared, [NOTHING, NOTHING], async () => []);
  if (broken.problems.length > 0)
    throw new Error(`The scene itself is broken:\n${broken.problems.join("\n")}`);
  return {
    carryOut: async (pair, order) =>
      await onClone(prepared, pair, async ({ watch, sides, begin }) => {
        for (const at of [0, 1] as const) begin(at);
        return await follow(watch, sides, order);
      }),
    carryOutByRows: async (pair, seed) =>
      await onClone(prepared, pair, async ({ watch, sides, begin, db }) => {
        await db.transaction(async (tx) => {
          const rows = await holdRows(tx, seed);
          await followRows(watch, sides, rows, () => {
            for (const at of [0, 1] as const) begin(at);
          });
        });
        return [];
      }),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

const NOTHING: Transaction = { name: "nothing", opens: [], run: async () => {} };

/** All runs, in an order by the seed. */
async function holdRows(tx: Database, seed: number): Promise<HeldRows> {
  const random = new SeededRandom(seed);
  const found = await tx.query<{ id: string }>("select id from run order by id");
  const ids = found
    .map(({ id }) => ({ id, place: random.fraction() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ id }) => id);
  for (const [at, id] of ids.entries()) {
    await tx.query(`savepoint row_${at}`);
    await tx.query("select 1 from run where id = $1 for update", [id]);
  }
  let left = ids.length;
  return {
    ids,
    letLastGo: async () => {
      left--;
      await tx.query(`rollback to savepoint row_${left}`);
    },
  };
}

interface Prepared {
  readonly template: string;
  readonly dataFolder: string;
  readonly signing: Signing;
  readonly scene: Scene;
}

/** Two processes on a new copy of the scene. */
interface Meeting {
  readonly db: Database;
  readonly watch: Watch;
  readonly sides: readonly [HeldSide, HeldSide];
  readonly begin: (side: 0 | 1) => void;
}

async function onClone(
  prepared: Prepared,
  pair: Pair,
  meet: (meeting: Meeting) => Promise<readonly Step[]>,
): Promise<Outcome> {
  await using opened = new AsyncDisposableStack();
  const { signing, dataFolder } = prepared;
  const database = await cloneTestDatabase(prepared.template);
  opened.defer(async () => await database.drop());
  const folder = mkdtempSync(join(tmpdir(), "latchkey-locks-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(dataFolder, "objects"), join(folder, "objects"), { recursive: true });
  const { db } = database;
  guardRows(db, signing, null);
  const watch = new Watch(db);
  const [a, b] = ["a", "b"].map((name) => {
    const real = openReal(database.connectionString, name);
    opened.defer(async () => await real.end());
    guardRows(real, signing, null);
    return new HeldSide(name, real, watch.onChange);
  });
  const sides = [must(a, "a side"), must(b, "a side")] as const;
  const begin = (at: 0 | 1): void =>
    sides[at].begin(async (own) => await pair[at].run(await partsOf(prepared, own, folder)));
  const steps = await meet({ db, watch, sides, begin });
  const problems = ([0, 1] as const).flatMap((at) => problemsOf(sides[at], pair[at]));
  // What every worker does with runs that one took who was taken for dead.
  await freeOrphanedRuns(db);
  const broken = await findBroken(db, prepared, folder);
  return { steps, problems: [...problems, ...broken], waits: watch.waits };
}

async function findBroken(db: Database, { signing }: Prepared, folder: string): Promise<readonly string[]> {
  const findings = await checkInvariants({
    db,
    blobs: openLocalStore(join(folder, "objects")),
    audit: signing.audit,
    checkpointFiles: [],
    tombstoneFiles: [join(folder, "tombstones.ndjson")],
    listForgottenScratch: async () => [],
    secondLookMs: 0,
    onProgress: () => {},
  });
  return findings.map(({ check, place, problem }) => `${check}: ${place}: ${problem}`);
}

function openReal(connectionString: string, name: string): Database {
  const url = new URL(connectionString);
  url.searchParams.set("options", `-c deadlock_timeout=${DEADLOCK_MS} -c synchronous_commit=off`);
  return openPool({ connectionString: url.href }, { applicationName: sessionName(name), max: 2 });
}

function problemsOf(side: HeldSide, { name, mayBeLockedOut }: Transaction): readonly string[] {
  const problems = side.unlimited.map((each) => `${name}: ${each}`);
  if (side.ended?.kind !== "failed") return problems;
  const { error } = side.ended;
  const code = (error as { code?: unknown }).code;
  if (code === "55P03" && mayBeLockedOut !== undefined) return problems;
  // What the product refuses in words of its own is an answer.
  if (error instanceof Error && ANSWERS.includes(error.constructor.name)) return problems;
  const met = side.deadlocks.length > 0 ? ` (deadlock at ${side.deadlocks.join(", ")})` : "";
  return [...problems, `${name} failed: ${error instanceof Error ? error.message : String(error)}${met}`];
}

const ANSWERS = ["Problem", "OperatorError"];

async function partsOf(
  { signing, scene, dataFolder }: Prepared,
  db: Database,
  folder: string,
): Promise<Parts> {
  const log = openLog({ level: "silent", format: "json" });
  const { masterKey } = await readKeys(openFileSource(join(dataFolder, "master.key")));
  return {
    db,
    scene,
    signing,
    audit: signing.audit,
    log,
    news: NO_NEWS,
    buckets: new TokenBuckets(),
    blobs: openLocalStore(join(folder, "objects")),
    vault: openVault({ publicKey: masterKey.publicJwk, privateKeys: masterKey.privateKeys }),
    nextVault: openVault({
      publicKey: must(masterKey.publicJwks.get(scene.nextKid), "the next key"),
      privateKeys: masterKey.privateKeys,
    }),
    tombstones: openTombstones(join(folder, "tombstones.ndjson")),
    quotas: new AccountQuotas(db, { queuedRuns: null, storedBytes: null }, log),
    publicUrl: () => "http://localhost",
  };
}

/** For a reader: the pair, the order and what is wrong. */
export const tell = (pair: Pair, { steps, problems }: Outcome): string =>
  `a: ${pair[0].name}, b: ${pair[1].name}\n    ${describe(steps)}\n  ${problems.join("\n  ")}`;
