import type { ScenarioName } from "./scenario.ts";

/** A defect that is planted into a copy of the program, to see whether the simulator finds it. */
export interface Plant {
  readonly name: string;
  /** What is wrong with it. */
  readonly what: string;
  /** Seeds of this scenario alone are tried; those between them are counted. Unless given, all seeds are. */
  readonly scenario?: ScenarioName;
  readonly edits: readonly Edit[];
}

/** `find` stands once in the file: a line that has moved on fails loudly. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

const edit = (file: string, find: string, put: string): Edit => ({ file, find, put });

/** Defects that the program had, or might have. */
export const PLANTS: readonly Plant[] = [
  {
    name: "no-self-fence",
    what: "a worker that stood still sends a write although others may have its run (A3)",
    scenario: "thaw",
    edits: [
      edit(
        "src/engine/self-fence.ts",
        `if (owner !== this.#workerId || !isFresh) throw new RunStopped("lease_lost");`,
        `void [owner, isFresh, RunStopped];`,
      ),
    ],
  },
  {
    name: "throttle-in-place",
    what: "runs wait for a throttle's slot in their place, and the wait is their time (B1)",
    scenario: "crowd",
    edits: [
      edit(
        "src/engine/waiting/take-slot.ts",
        `const withinMs = mayQueue(run) ? patienceMs : Infinity;`,
        `const withinMs = mayQueue(run) ? 1e9 : patienceMs;`,
      ),
      edit(
        "src/engine/waiting/take-slot.ts",
        `await runClock.standStill(async () => await paces.take(node, spacingMs, { rank, withinMs, signal }));`,
        `await paces.take(node, spacingMs, { rank, withinMs, signal });`,
      ),
    ],
  },
  {
    name: "logins-in-place",
    what: "runs wait for logins with their credential in their places, and the wait is their time (B2)",
    scenario: "logins",
    edits: [
      edit(
        "src/engine/login/take-login-turn.ts",
        `const patienceMs = mayQueue ? limits.loginPatienceMs : Infinity;`,
        `const patienceMs = mayQueue ? Infinity : Infinity;`,
      ),
      edit(
        "src/engine/login/take-login-turn.ts",
        `return await runClock.standStill(async () => {`,
        `void runClock;\n  return await (async <T>(wait: () => Promise<T>) => await wait())(async () => {`,
      ),
    ],
  },
  {
    name: "pairs-starve",
    what: "a run that needs two credentials waits until both are free, however many others come (B10)",
    scenario: "pairs",
    edits: [
      edit("src/db/runs/admission.ts", `const PASSED_OVER_MAX = 3;`, `const PASSED_OVER_MAX = 1_000_000;`),
    ],
  },
  {
    name: "suspect-blocks-all",
    what: "while a run is suspected of ending its process, a worker takes no other run (B7)",
    scenario: "suspect",
    edits: [
      edit(
        "src/worker/worker.ts",
        `room: () => this.#pace.slots - this.#active.size,`,
        `room: () => (this.#hasSuspects ? 0 : this.#pace.slots - this.#active.size),`,
      ),
      edit("src/worker/worker.ts", `  #idleLooks = 0;\n`, `  #idleLooks = 0;\n  #hasSuspects = false;\n`),
      edit(
        "src/worker/worker.ts",
        `    const accounts = await listAccountsToServe(db);\n`,
        `    this.#hasSuspects = this.#quarantine !== null && (await db.query("select from run where lost_leases = 2 and ended_at is null")).length > 0;
    const accounts = await listAccountsToServe(db);\n`,
      ),
    ],
  },
  {
    name: "left-runs-on-top",
    what: "runs that were handed back come on top of a worker's places (B9)",
    scenario: "pauses",
    edits: [
      edit(
        "src/worker/run-taker.ts",
        `await this.#admit(accountId, share - left, workerId, isLikely);`,
        `await this.#admit(accountId, share, workerId, isLikely);`,
      ),
      edit(
        "src/worker/run-taker.ts",
        `if (left === share) return this.#add(accountId, isLikely);`,
        `void left;`,
      ),
    ],
  },
  {
    name: "runs-of-nobody",
    what: "nobody looks for runs whose lease a worker took that was taken over before (C1)",
    scenario: "pauses",
    edits: [
      edit("src/worker/worker.ts", `    await freeOrphanedRuns(db);\n`, `    void freeOrphanedRuns;\n`),
    ],
  },
  {
    name: "stale-by-clock",
    what: "a worker is dead when its heartbeat is old by the database's clock, stall or step (C2)",
    scenario: "clocks",
    edits: [
      edit(
        "src/worker/peer-watch.ts",
        `    return peers.filter((peer) => {\n`,
        `    if (peers.length > 0) return peers;\n    return peers.filter((peer) => {\n`,
      ),
      edit(
        "src/db/runs/workers.ts",
        "on seen.id = worker.id and seen.sign = ${SIGN}",
        "on seen.id = worker.id and worker.heartbeat_at < app_now() - interval '15 s'",
      ),
    ],
  },
  {
    name: "two-runs-of-a-key",
    what: "two requests with one key in one batch make two runs (D1)",
    edits: [
      edit("src/actions/replay-or-run.ts", `  mine.set(name, { fingerprint, outcome });\n`, ``),
      edit(
        "src/db/keyed-inserts.ts",
        `select distinct on (account_id, key_hash, case when key_hash is null then id end) * from given`,
        `select * from given`,
      ),
    ],
  },
  {
    name: "no-fence",
    what: "a worker writes to a run whatever has become of its lease",
    scenario: "thaw",
    edits: [
      edit(
        "src/db/runs/lease.ts",
        "`lease_owner = ${owner} and lease_epoch = ${epoch} and ended_at is null`",
        "`${owner}::text is not null and ${epoch}::int is not null and ended_at is null`",
      ),
    ],
  },
  {
    name: "intent-after-request",
    what: "a write's intent is stored after its request has left",
    edits: [
      edit(
        "src/nodes/http/http-writes.ts",
        `    await context.writes.begin(write.ordinal);
    await stopUnsent(context, write);
    response = await context.writes.send(outbound, write.ordinal);`,
        `    response = await context.writes.send(outbound, write.ordinal);
    await context.writes.begin(write.ordinal);`,
      ),
    ],
  },
  {
    name: "no-skip-locked",
    what: "an admission waits for a run's row that a cancel has locked",
    scenario: "cancels",
    edits: [
      edit(
        "src/db/runs/admission.ts",
        "from room) for no key update of run skip locked",
        "from room) for no key update of run",
      ),
    ],
  },
  {
    name: "stale-limit",
    what: "two admissions of an account count its runs at the same time",
    scenario: "burst",
    edits: [
      edit(
        "src/db/runs/admission.ts",
        "const LOCK_ACCOUNT = `select 1 from account where id = $1 for no key update`;",
        "const LOCK_ACCOUNT = `select 1 from account where id = $1`;",
      ),
    ],
  },
  {
    name: "lost-wake-up",
    what: "a run is begun by its notification alone",
    edits: [
      edit(
        "src/worker/worker.ts",
        `    this.#taker.wake(accounts.flatMap(({ accountId, waits }) => (waits ? [accountId] : [])));\n`,
        ``,
      ),
    ],
  },
  {
    name: "review-decided-twice",
    what: "two people decide one review",
    edits: [
      edit(
        "src/db/runs/reviews.ts",
        "select 1 from run where id = (select run_id from review where id = $1) for no key update",
        "select 1 from run where id = (select run_id from review where id = $1)",
      ),
      edit(
        "src/db/runs/reviews.ts",
        "where id = $1 and status = 'open' returning 1",
        "where id = $1 returning 1",
      ),
      edit(
        "src/actions/reviews/decide-review.ts",
        `  const approved = await settle(tx, audit, review, "approved", reviewer);
  assert(await resumeRun(tx, review.runId), "the run of an open review is parked");`,
        `  const approved = await settle(tx, audit, review, "approved", reviewer);
  await resumeRun(tx, review.runId);`,
      ),
    ],
  },
  {
    name: "cancel-after-end",
    what: "a cancel overwrites the end of a run",
    edits: [
      edit(
        "src/db/runs/runs.ts",
        "where run.id = $2 and run.account_id = $1 and run.status = any($3) and seen.id = run.id",
        "where run.id = $2 and run.account_id = $1 and $3::text[] is not null and seen.id = run.id",
      ),
    ],
  },
  {
    name: "purge-of-a-live-run",
    what: "an operator's deletion does not ask whether the run has ended",
    edits: [
      edit(
        "src/db/runs/purges.ts",
        `"select id from run where id = $2 and ended_at is not null and purged_at is null for no key update"`,
        `"select id from run where id = $2 and purged_at is null for no key update"`,
      ),
    ],
  },
  {
    name: "objects-before-rows",
    what: "a deletion removes the rows of results before it marks the run: a reader sees a run without results",
    edits: [
      edit(
        "src/actions/runs/purge-runs.ts",
        `  const taken = await services.db.transaction(async (tx) => {\n`,
        `  await services.db.query("delete from run_result where run_id = $1", [id]);\n  const taken = await services.db.transaction(async (tx) => {\n`,
      ),
    ],
  },
  {
    name: "entry-outside",
    what: "the audit entry of a decided write is in no transaction with it",
    scenario: "pauses",
    edits: [
      edit(
        "src/actions/reviews/decide-write.ts",
        `await recordAudit(tx, services.audit, {`,
        `await recordAudit(services.db, services.audit, {`,
      ),
    ],
  },
  {
    name: "entry-after",
    what: "the audit entry of a deletion comes after its COMMIT",
    edits: [
      edit(
        "src/actions/runs/purge-runs.ts",
        `    await recordAudit(tx, services.signing.audit, {
      accountId,
      actor,
      action: "run.purge",
      subjectId: id,
      runId: id,
    });
    return purged;
  });`,
        `    return purged;
  });
  if (taken) await recordAudit(services.db, services.signing.audit, { accountId, actor, action: "run.purge", subjectId: id, runId: id });`,
      ),
    ],
  },
  {
    name: "zombie-renews",
    what: "a worker that was taken over hears that it lives",
    scenario: "thaw",
    edits: [
      edit(
        "src/db/runs/workers.ts",
        "`update worker set heartbeat_at = app_now(), beats = beats + 1 where id = $1 returning 1`,\n    [workerId],\n  );\n  return rows.length > 0;",
        "`update worker set heartbeat_at = app_now(), beats = beats + 1 where id = $1 returning 1`,\n    [workerId],\n  );\n  return rows.length >= 0;",
      ),
    ],
  },
  {
    name: "endless-retries",
    what: "a run's retries are counted, and not limited",
    scenario: "poison",
    edits: [
      edit(
        "src/db/runs/retry-budget.ts",
        `returning retries <= $4 as "isGranted"`,
        `returning true as "isGranted"`,
      ),
    ],
  },
  {
    name: "epoch-of-a-write",
    what: "a worker that was taken over says how a write ended that another one has begun again",
    scenario: "thaw",
    edits: [
      edit(
        "src/db/runs/run-writes.ts",
        "and ordinal = $5 and epoch = $6\n",
        "and ordinal = $5 and $6::int is not null\n",
      ),
    ],
  },
  {
    name: "orphans-stay",
    what: "a worker keeps the leases of runs that it does not carry",
    scenario: "anything",
    edits: [
      edit(
        "src/worker/worker.ts",
        `      await releaseOrphans(db, workerId, orphans);\n`,
        `      void [releaseOrphans, orphans];\n`,
      ),
    ],
  },
  {
    name: "line-forgotten",
    what: "nobody calls the next run of a line whose caller has died",
    scenario: "lines",
    edits: [
      edit("src/worker/worker.ts", `    await callOverdueQueued(db);\n`, `    void callOverdueQueued;\n`),
    ],
  },
  {
    name: "key-claimed-again",
    what: "a key that another process has claimed is free for another run",
    edits: [
      edit(
        "src/db/idempotency.ts",
        "where idempotency_key.expires_at <= app_now()",
        "where idempotency_key.expires_at <= app_now() + interval '1 day'",
      ),
    ],
  },
];
