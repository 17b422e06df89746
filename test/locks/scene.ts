import { join } from "node:path";
import { Readable } from "node:stream";
import { triggerRun } from "#actions/runs/trigger-run.ts";
import { createCredentialSession } from "#actions/sessions/create-credential-session.ts";
import { cancelRunAsOperator } from "#actions/runs/cancel-run.ts";
import { setAccountSecret } from "#actions/secrets/set-account-secret.ts";
import type { Caller } from "#actions/services.ts";
import { readHostedById } from "#actions/sessions/hosted-session.ts";
import { submitCredentials } from "#actions/sessions/submit-credentials.ts";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { addKey } from "#actions/vault/master-keys.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import type { BlobStore } from "#blobs/store.ts";
import { findAccountBySlug } from "#db/accounts.ts";
import { lookUpDocument } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { admitRuns } from "#db/runs/admission.ts";
import type { Lease } from "#db/runs/lease.ts";
import { joinQueue } from "#db/runs/lines.ts";
import { notePoll, waitForPoll } from "#db/runs/polls.ts";
import { insertReview } from "#db/runs/reviews.ts";
import { completeRun } from "#db/runs/run-results.ts";
import { saveStepSource, startStep } from "#db/runs/run-steps.ts";
import { beginWrite, endWrite } from "#db/runs/run-writes.ts";
import { parkRun, releaseRun, startRun, type ClaimedRun } from "#db/runs/runs.ts";
import { insertWorker } from "#db/runs/workers.ts";
import type { TriggerBody } from "#domain/trigger-routing.ts";
import { must } from "#lib/assert.ts";
import { openLog } from "#lib/log.ts";
import { newId } from "#lib/new-id.ts";
import { TokenBuckets } from "#lib/token-bucket.ts";
import { putSchedule } from "#actions/schedules/put-schedule.ts";
import type { Signing } from "#lib/signing.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import { openVault } from "#vault/vault.ts";
import { moveClock } from "../clock.ts";
import { blueprint } from "../documents/bench.ts";
import { ADDRESS, NO_NEWS } from "../no-news.ts";
import type { Installation } from "../service.ts";

/** The rows on which all transactions meet: a run in each state, and what belongs to them. */
export interface Scene {
  readonly caller: Caller;
  /** An operator of this installation. */
  readonly operatorId: string;
  readonly credential: string;
  /** A schedule with this credential, whose time has come. */
  readonly schedule: string;
  /** A second one, of runs that need both. */
  readonly other: string;
  readonly session: string;
  /** Sessions whose login is tried when it is submitted: nothing yet, tried without an answer, refused. */
  readonly tried: { readonly fresh: string; readonly unanswered: string; readonly refused: string };
  /** Of a master key that is registered and seals nothing yet. */
  readonly nextKid: string;
  /** Not begun. `both` and `bothToo` need two credentials. */
  readonly queued: readonly string[];
  readonly held: Claimed;
  /** It has lost a lease, so what it finishes is progress. */
  readonly lost: Claimed;
  readonly parked: { readonly run: string; readonly review: string };
  readonly doubtful: string;
  readonly left: string;
  readonly inLine: string;
  readonly polling: string;
  readonly ended: string;
}

export interface Claimed {
  readonly run: ClaimedRun;
  readonly lease: Lease;
}

export const WORKER = "wrk_alive";
export const DEAD_WORKER = "wrk_dead";
export const SECRET = {
  account: "acme",
  name: "shared",
  value: "s-e-c-r-e-t",
  origins: ["https://it.example"],
};
const GIVEN =
  "- { id: rows, type: input, refKey: rows, accepts: json }\n- { id: parsed, type: parse, from: rows, format: json }";
const out = (from: string): string => `- { id: out, type: output, refKey: out, from: ${from} }`;

export const DOCUMENTS = [
  "account: acme\nconcurrency: 20",
  `strategy: strat_it
account: acme
hosts: ["https://it.example"]
fields: [{ key: token, label: Token, type: password }]
login: { type: bearer, token: token }
concurrency: 2`,
  `strategy: strat_tried
account: acme
hosts: ["https://it.example"]
fields: [{ key: token, label: Token, type: password }]
login: { type: bearer, token: token, check: { request: { url: /me } } }
verify: true`,
  blueprint(
    "reads",
    `- { id: items, type: http, credential: it, request: { url: /items }, records: items }\n${out("items")}`,
    "credentials: { it: { strategy: strat_it } }",
  ),
  blueprint(
    "joins",
    `- { id: items, type: http, credential: it, request: { url: /items }, records: items }
- { id: more, type: http, credential: too, request: { url: /items }, records: items }\n${out("items")}`,
    "credentials: { it: { strategy: strat_it }, too: { strategy: strat_it } }",
  ),
  blueprint(
    "sends",
    `${GIVEN}
- { id: sent, type: http, for_each: parsed, request: { method: POST, url: "https://it.example/orders", json: { n: "{{ n }}" } } }
${out("sent")}`,
    "hosts: ['https://it.example']",
  ),
  blueprint("gated", `${GIVEN}\n- { id: gate, type: review, from: parsed }\n${out("gate")}`),
  blueprint("brief", `${GIVEN}\n${out("parsed")}`, "retention: 1s"),
] as const;

const ROWS = JSON.stringify([{ n: 1 }, { n: 2 }]);

/** Plants the scene by the product's own functions, in the state in which a crash of everything would leave it. */
export async function plantScene(installation: Installation, signing: Signing): Promise<Scene> {
  const { db } = installation.database;
  await installation.apply(...DOCUMENTS);
  await installation.createKey("acme");
  const account = must(await findAccountBySlug(db, "acme"), "the account");
  const [key] = await db.query<{ id: string }>("select id from api_key");
  const caller = { account, keyId: must(key, "a key").id, blueprintKeys: null, scopes: null };
  const { masterKey } = await readKeys(openFileSource(join(installation.dataFolder, "master.key")));
  const vault = openVault({ publicKey: masterKey.publicJwk, privateKeys: masterKey.privateKeys });
  const submitTo = async (id: string): Promise<void> => {
    const hosted = await readHostedById({ db }, account.id, id);
    const services = { db, signing, vault, news: NO_NEWS, buckets: new TokenBuckets() };
    await submitCredentials(services, hosted, new Map([["token", "t"]]), ADDRESS);
  };
  const submit = async (): Promise<string> => {
    const id = await plantSession(db, signing, caller);
    await submitTo(id);
    return must((await readHostedById({ db }, account.id, id)).session.credentialId, "the credential");
  };
  const [credential, other] = [await submit(), await submit()];
  await setAccountSecret({ db, vault, signing }, SECRET);
  const source = openFileSource(join(installation.dataFolder, "master.key"));
  const next = await addKey(db, signing.audit, source);
  const session = await plantSession(db, signing, caller);
  const expired = await plantSession(db, signing, caller);
  await db.query(
    "update credential_session set created_at = created_at - interval '1 day', expires_at = app_now() where id = $1",
    [expired],
  );
  const plantTried = async (): Promise<string> => await plantSession(db, signing, caller, "strat_tried");
  const tried = { fresh: await plantTried(), unanswered: await plantTried(), refused: await plantTried() };
  for (const id of [tried.unanswered, tried.refused]) await submitTo(id);
  const logins = await db.query<{ id: string }>("select id from run where blueprint_id is null");
  for (const { id } of logins) await cancelRunAsOperator(db, signing, id);
  await db.query("update credential set login_rejections = 1 where session_id = $1", [tried.refused]);
  for (const [id, lockKey] of [
    [WORKER, 1],
    [DEAD_WORKER, 2],
  ] as const)
    await insertWorker(db, { id, lockKey, hostname: "h", pid: 1 });
  const runs = new Planted(installation, caller);
  const objects = openLocalStore(join(installation.dataFolder, "objects"));
  const [operator] = await db.query<{ id: string }>("select id from operator");
  const scene = {
    schedule: await plantSchedule(db, signing, caller, credential),
    caller,
    operatorId: must(operator, "an operator").id,
    credential,
    other,
    session,
    tried,
    nextKid: next.kid,
    ended: await runs.plantEnded(),
    parked: await runs.plantParked(objects),
    doubtful: await runs.plantDoubtful(),
    left: await runs.plantLeft(),
    inLine: await runs.plantInLine(credential),
    polling: await runs.plantPolling(),
    held: await runs.plantHeld(),
    lost: await runs.plantLost(),
  };
  await runs.begin("sends", DEAD_WORKER);
  await runs.begin("sends", DEAD_WORKER);
  const queued = [
    await runs.trigger("reads", [credential]),
    await runs.trigger("joins", [credential, other]),
    await runs.trigger("joins", [other, credential]),
    await runs.trigger("gated"),
  ];
  await closeAudit({ db, audit: signing.audit, log: openLog({ level: "silent", format: "json" }) });
  // So that what waits for a time is due.
  await moveClock(db, "1 minute");
  return { ...scene, queued };
}

async function plantSchedule(
  db: Database,
  signing: Signing,
  caller: Caller,
  credential: string,
): Promise<string> {
  await putSchedule({ db, signing }, caller, "each-minute", {
    blueprintKey: "reads",
    cron: "* * * * *",
    timeZone: "UTC",
    missed: "once",
    overlap: "cancel",
    jitter: "0",
    trigger: new Map([["credential_id", credential]]),
  });
  const [schedule] = await db.query<{ id: string }>("select id from schedule");
  return must(schedule, "the schedule").id;
}

async function plantSession(
  db: Database,
  signing: Signing,
  caller: Caller,
  strategyId = "strat_it",
): Promise<string> {
  const request = {
    strategyId,
    name: null,
    returnUrl: null,
    metadata: null,
    cancelUrl: null,
    expiresInSeconds: null,
  };
  const services = { publicUrl: () => "http://localhost", signing };
  const { body } = await db.transaction(
    async (tx) => await createCredentialSession(services, tx, caller, request),
  );
  return (JSON.parse(body) as { id: string }).id;
}

/** Makes runs, each by the steps that bring a run into its state. */
class Planted {
  readonly #db: Installation["database"]["db"];
  readonly #caller: Caller;

  constructor({ database }: Installation, caller: Caller) {
    this.#db = database.db;
    this.#caller = caller;
  }

  async trigger(key: string, credentials: readonly string[] = []): Promise<string> {
    const { account } = this.#caller;
    const version = must(await lookUpDocument(this.#db, "blueprint", account.id, key), key);
    const body: TriggerBody = new Map(
      credentials.length > 0
        ? [["credential_ids", { kind: "string", text: credentials.join(",") }]]
        : [["rows", { kind: "json", text: ROWS, isNull: false, items: null }]],
    );
    const answer = await this.#db.transaction(
      async (tx) => await triggerRun(tx, this.#caller, version, body),
    );
    return (JSON.parse(answer.body) as { id: string }).id;
  }

  /** Nothing else waits when this is called. */
  async begin(key: string, owner: string = WORKER, credentials: readonly string[] = []): Promise<Claimed> {
    await this.trigger(key, credentials);
    const { runs } = await admitRuns(this.#db, this.#caller.account.id, owner, 1);
    const run = must(runs[0], "the run that waits");
    const lease = { runId: run.id, owner, epoch: run.epoch };
    await startRun(this.#db, { lease });
    return { run, lease };
  }

  async #step({ run, lease }: Claimed, nodeId: string): Promise<void> {
    await startStep(this.#db, { lease, accountId: run.accountId, nodeId });
  }

  async plantEnded(): Promise<string> {
    const { run, lease } = await this.begin("brief");
    const content = Buffer.from("[]");
    const result = { key: "out", totalRecords: 0, jsonBytes: 2, content, blob: null };
    const completion = { lease, accountId: run.accountId, responseBytes: 2, results: [result], tally: null };
    await completeRun(this.#db, completion);
    return run.id;
  }

  async plantParked(objects: BlobStore): Promise<Scene["parked"]> {
    const claimed = await this.begin("gated");
    const { run, lease } = claimed;
    await this.#step(claimed, "gate");
    const key = `steps/${run.accountId}/${run.id}/records`;
    const lines = '{"data":{"n":1},"errors":[],"isValid":true}\n';
    const stored = await objects.put(key, Readable.from([Buffer.from(lines)]));
    const source = { accountId: run.accountId, nodeId: "gate", blob: stored, tally: null };
    await saveStepSource(this.#db, lease, source);
    const review = newId("review_");
    await this.#db.transaction(async (tx) => {
      await parkRun(tx, lease);
      await insertReview(tx, {
        id: review,
        accountId: run.accountId,
        runId: run.id,
        nodeId: "gate",
        title: "Look",
        instructions: null,
        editable: false,
        timeoutMs: 1_000,
        onTimeout: "approve",
        recordsTotal: 1,
        recordsValid: 1,
      });
    });
    return { run: run.id, review };
  }

  async plantDoubtful(): Promise<string> {
    const claimed = await this.begin("sends");
    const { run, lease } = claimed;
    await this.#step(claimed, "sent");
    const write = { accountId: run.accountId, nodeId: "sent", ordinal: 0 };
    await beginWrite(this.#db, lease, write);
    await endWrite(this.#db, lease, {
      ...write,
      epoch: lease.epoch,
      status: "in_doubt",
      outcome: null,
      detail: "no answer",
      sent: null,
    });
    await parkRun(this.#db, lease);
    return run.id;
  }

  async plantLeft(): Promise<string> {
    const { run, lease } = await this.begin("sends");
    await releaseRun(this.#db, lease);
    return run.id;
  }

  async plantInLine(credential: string): Promise<string> {
    const { run, lease } = await this.begin("reads", WORKER, [credential]);
    await joinQueue(this.#db, lease, { line: credential, waitedMs: 0 });
    return run.id;
  }

  async plantPolling(): Promise<string> {
    const { run, lease } = await this.begin("sends");
    const place = { nodeId: "sent", ordinal: 0 };
    await notePoll(this.#db, lease, { ...place, accountId: run.accountId });
    await waitForPoll(this.#db, lease, { ...place, waitMs: 1_000 });
    return run.id;
  }

  async plantHeld(): Promise<Claimed> {
    const claimed = await this.begin("sends");
    await this.#step(claimed, "sent");
    return claimed;
  }

  async plantLost(): Promise<Claimed> {
    const claimed = await this.begin("sends");
    await this.#step(claimed, "sent");
    await this.#db.query("update run set lost_leases = 1 where id = $1", [claimed.run.id]);
    return claimed;
  }
}
