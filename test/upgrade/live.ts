import assert from "node:assert/strict";
import type { Role } from "#service/assemble.ts";
import { createApiKey } from "#actions/keys/create-api-key.ts";
import { revokeApiKey } from "#actions/keys/revoke-api-key.ts";
import { rotateApiKey } from "#actions/keys/rotate-api-key.ts";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { connect, openCaller } from "../caller.ts";
import { runHousekeeping } from "../flow/run-history.ts";
import { signingOf } from "../invariants.ts";
import { keepSecret } from "../keep-secret.ts";
import { install, type Installation, type ServiceProcess } from "../service.ts";
import { EARLIER, PRESENT } from "./documents.ts";
import { readCompleted, resultsOf, type CompletedRun, type Expected } from "./expected.ts";
import { actAsOperators } from "./live-operators.ts";
import { begin, leaveRuns, stockForm } from "./live-runs.ts";
import { connectPeople, leaveSessions, newSession } from "./live-sessions.ts";
import { openNorthwind, PASSWORDS, SECRETS, type Northwind } from "./northwind.ts";

/** An installation that has lived for three days, and that nobody runs any more. */
export interface Lived extends AsyncDisposable, Pick<Installation, "database" | "dataFolder"> {
  readonly expected: Omit<Expected, "at">;
}

const DAY_MS = 86_400_000;

/** Whose life it is. */
interface Stage {
  readonly installation: Installation;
  readonly northwind: Northwind;
  readonly db: Installation["database"]["db"];
}

export async function live(): Promise<Lived> {
  await using opened = new AsyncDisposableStack();
  const northwind = opened.use(await openNorthwind());
  const installation = opened.use(await install());
  const stage = { installation, northwind, db: installation.database.db };
  const earlier = await liveEarlier(stage);
  const present = await livePresent(stage, earlier);
  const underWay = await leaveUnderWay(stage, earlier);
  const tokens = northwind.seen("POST /orders").map(({ headers }) => String(headers["idempotency-key"]));
  const kept = opened.move();
  return {
    database: installation.database,
    dataFolder: installation.dataFolder,
    expected: {
      environment: {},
      ...present,
      ...underWay,
      writeTokens: tokens.filter((token) => token !== present.doubtful.token),
      refreshToken: northwind.refreshToken,
    },
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

/** A process of its own: one of them is killed in the middle of a run. */
const start = async ({ installation }: Stage, roles?: readonly Role[]): Promise<ServiceProcess> =>
  await installation.serveProcess({}, roles);

interface Earlier {
  readonly acmeKey: string;
  readonly globexKey: string;
  readonly expiredKey: string;
  /** Connected with the first version of the strategy, and sealed with the first master key. */
  readonly ada: string;
  readonly openSession: Expected["openSession"];
  readonly expiredSession: Expected["expiredSession"];
  readonly purged: string;
  readonly ofFirstVersion: CompletedRun;
}

/** Three days before: what expires, is purged, or has newer versions later. */
async function liveEarlier(stage: Stage): Promise<Earlier> {
  const { installation, db } = stage;
  await moveClock(db, "-3 days");
  await installation.apply(...EARLIER);
  const [acmeKey, globexKey] = [await newKey(stage, "acme"), await newKey(stage, "globex")];
  const expiredKey = await newKey(stage, "acme", { lifetimeMs: DAY_MS });
  const service = await start(stage);
  const [acme, globex] = [openCaller(service.url, acmeKey.key), openCaller(service.url, globexKey.key)];
  const ada = await connect(acme, "strat_portal", { username: "ada", password: PASSWORDS.ada });
  const openSession = await newSession(acme, "strat_portal");
  const expiredSession = await newSession(globex, "strat_globex");
  const run = await begin(acme, "invoices", { credential_id: ada, run_name: "January", order: "PO-1" });
  await resultsOf(acme, run);
  const ofFirstVersion = await readCompleted(acme, "acme", run);
  const purged = await begin(globex, "stock", stockForm());
  await resultsOf(globex, purged);
  await service.end();
  const added = await installation.command("master-key", "add");
  const kid = /^Added (\S+) /.exec(added.stdout)?.[1] ?? assert.fail(added.stderr);
  const promoted = await installation.command("master-key", "promote", kid);
  assert.equal(promoted.code, 0, promoted.stderr);
  return {
    acmeKey: acmeKey.key,
    globexKey: globexKey.key,
    expiredKey: expiredKey.key,
    ada,
    openSession,
    expiredSession,
    purged,
    ofFirstVersion,
  };
}

type UnderWay = "queued" | "halfway";
type Present = Omit<Expected, "at" | "environment" | "writeTokens" | "refreshToken" | UnderWay>;

/** Today: everything that people leave behind when they go home. */
async function livePresent(stage: Stage, earlier: Earlier): Promise<Present> {
  const { installation, northwind, db } = stage;
  await moveClock(db, "0 seconds");
  await installation.apply(...PRESENT);
  await keepSecret(installation, "NORTHWIND", SECRETS.client, northwind.url);
  const keys = await leaveKeys(stage, earlier);
  const service = await start(stage);
  const [acme, globex] = [openCaller(service.url, keys.acme), openCaller(service.url, keys.globex)];
  const people = await connectPeople(acme, globex, earlier.ada);
  const runs = await leaveRuns({ acme, northwind, db });
  const sessions = await leaveSessions(acme);
  const operators = await actAsOperators({ installation, service, northwind, acme }, people.uses);
  await eventually("what is older than its retention is purged", async () => {
    await runHousekeeping(db);
    const left = await db.query("select 1 from run where id = $1 and purged_at is null", [earlier.purged]);
    return left.length === 0 ? true : undefined;
  });
  // In order: the chains of the audit log are closed, and their checkpoints written.
  await service.end();
  return {
    keys,
    ...people,
    ...runs,
    ...sessions,
    ...operators.left,
    completed: [earlier.ofFirstVersion, ...runs.completed, ...operators.completed],
    purged: [earlier.purged, ...operators.purged],
    openSession: earlier.openSession,
    expiredSession: earlier.expiredSession,
  };
}

interface KeyWish {
  readonly lifetimeMs?: number;
  readonly blueprintKeys?: readonly string[];
}

async function newKey(
  { installation, db }: Stage,
  account: string,
  { lifetimeMs = 0, blueprintKeys = [] }: KeyWish = {},
): Promise<{ readonly id: string; readonly key: string }> {
  return await createApiKey(db, signingOf(installation), {
    account,
    name: "",
    blueprintKeys: blueprintKeys.length === 0 ? null : blueprintKeys,
    scopes: null,
    lifetimeMs: lifetimeMs === 0 ? null : lifetimeMs,
  });
}

async function leaveKeys(
  stage: Stage,
  { acmeKey, globexKey, expiredKey }: Earlier,
): Promise<Expected["keys"]> {
  const signing = signingOf(stage.installation);
  const [limited, replaced, revoked] = [
    await newKey(stage, "acme", { blueprintKeys: ["report"] }),
    await newKey(stage, "acme"),
    await newKey(stage, "acme"),
  ];
  const successor = await rotateApiKey(stage.db, signing, {
    keyId: replaced.id,
    overlapMs: DAY_MS,
    name: null,
    scopes: null,
    lifetimeMs: null,
  });
  assert.ok(await revokeApiKey(stage.db, signing, revoked.id));
  return {
    acme: acmeKey,
    globex: globexKey,
    limited: limited.key,
    replaced: replaced.key,
    successor: successor.key,
    revoked: revoked.key,
    expired: expiredKey,
  };
}

/** Runs that no worker has seen yet, and one whose worker is killed while it waits for its last request. */
async function leaveUnderWay(stage: Stage, { acmeKey, ada }: Earlier): Promise<Pick<Expected, UnderWay>> {
  const { northwind } = stage;
  const dying = await start(stage);
  const caller = openCaller(dying.url, acmeKey);
  const triggers = [
    () => begin(caller, "halfway", { credential_id: ada }),
    () => begin(caller, "stock", stockForm()),
    () => begin(caller, "invoices", { credential_id: ada }),
  ];
  const whole = await Promise.all(triggers.map(async (trigger) => await resultsOf(caller, await trigger())));
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  northwind.on("GET /second", async () => {
    reached.resolve();
    await released.promise;
    return { drop: true };
  });
  const halfway = await begin(caller, "halfway", { credential_id: ada });
  await reached.promise;
  await dying.end("SIGKILL");
  released.resolve();
  const waiting = await start(stage, ["api"]);
  const queueing = openCaller(waiting.url, acmeKey);
  const queued = [
    { id: await begin(queueing, "stock", stockForm()), results: whole[1] },
    { id: await begin(queueing, "invoices", { credential_id: ada }), results: whole[2] },
  ];
  await waiting.end("SIGKILL");
  return { halfway: { id: halfway, results: whole[0] }, queued };
}
