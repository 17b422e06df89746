import { releaseLogin, saveLoginSession, takeLogin } from "#db/credentials/credentials.ts";
import { insertReview } from "#db/runs/reviews.ts";
import { completeRun } from "#db/runs/run-results.ts";
import { finishStep, saveStepSource } from "#db/runs/run-steps.ts";
import { beginWrite, endWrite } from "#db/runs/run-writes.ts";
import { failRun, releaseRun } from "#db/runs/runs.ts";
import { endRun } from "#engine/end-run.ts";
import { recordOpening } from "#engine/login/record-use.ts";
import { RunQueued, RunParked } from "#engine/run-ended.ts";
import { Tallies } from "#engine/tallies.ts";
import type { EngineServices } from "#engine/services.ts";
import { newId } from "#lib/new-id.ts";
import type { Claimed } from "./scene.ts";
import type { Parts, Transaction } from "./transaction.ts";

/** A run's worker, at what it does with the run. */
const engineOf = (parts: Parts): EngineServices =>
  ({ ...parts, clock: parts.db.clock }) as Partial<EngineServices> as EngineServices;

const endAs = async (parts: Parts, { run, lease }: Claimed, thrown: unknown) =>
  await endRun(
    engineOf(parts),
    { run, lease, tallies: new Tallies(parts.db.clock, 0), signal: new AbortController().signal },
    thrown,
  );

const STEP = {
  outputKind: "absent",
  output: null,
  blob: null,
  filename: null,
  contentType: null,
  recordsTotal: null,
  recordsValid: null,
  log: "",
  tookMs: 0,
  tally: null,
} as const;

const finish = async ({ db }: Parts, { run, lease }: Claimed) =>
  await finishStep(db, { ...STEP, lease, accountId: run.accountId, nodeId: "sent" });

export const OF_RUNS: readonly Transaction[] = [
  {
    name: "finish a step",
    opens: [],
    run: async (parts) => await finish(parts, parts.scene.held),
  },
  {
    name: "finish a step after a lost lease",
    opens: [],
    run: async (parts) => await finish(parts, parts.scene.lost),
  },
  {
    name: "write and its end",
    opens: [],
    run: async ({ db, scene: { lost } }) => {
      const { run, lease } = lost;
      const write = { accountId: run.accountId, nodeId: "sent", ordinal: 0 };
      if (!(await beginWrite(db, lease, write))) return false;
      const end = { epoch: lease.epoch, status: "done", outcome: "null", detail: null, sent: null } as const;
      return await endWrite(db, lease, { ...write, ...end });
    },
  },
  {
    name: "keep a step's source",
    opens: ["src/db/runs/run-steps.ts#saveStepSource"],
    run: async ({ db, blobs, scene: { held } }) => {
      const key = `steps/${held.run.accountId}/${held.run.id}/${newId("source_")}`;
      const stored = await blobs.put(
        key,
        (async function* () {
          yield Buffer.from("{}\n");
        })(),
      );
      const source = { accountId: held.run.accountId, nodeId: "sent", blob: stored, tally: null };
      return await saveStepSource(db, held.lease, source);
    },
  },
  {
    name: "complete a run",
    opens: [],
    run: async ({ db, scene: { held } }) => {
      const { run, lease } = held;
      const result = { key: "out", totalRecords: 0, jsonBytes: 2, content: Buffer.from("[]"), blob: null };
      const completion = {
        lease,
        accountId: run.accountId,
        responseBytes: 2,
        results: [result],
        tally: null,
      };
      return await completeRun(db, completion);
    },
  },
  {
    name: "fail a run",
    opens: [],
    run: async ({ db, scene }) =>
      await failRun(db, { lease: scene.lost.lease, kind: "internal", detail: "it failed", tally: null }),
  },
  {
    name: "hand a run back",
    opens: [],
    run: async ({ db, scene }) => await releaseRun(db, scene.held.lease),
  },
  {
    name: "park for a review",
    opens: ["src/engine/end-run.ts#parkForReview"],
    run: async (parts) => {
      const { held } = parts.scene;
      const ask = new RunParked(async (tx) => {
        await insertReview(tx, {
          id: newId("review_"),
          accountId: held.run.accountId,
          runId: held.run.id,
          nodeId: "sent",
          title: "Look",
          instructions: null,
          editable: false,
          timeoutMs: null,
          onTimeout: "fail",
          recordsTotal: 0,
          recordsValid: 0,
        });
      });
      return await endAs(parts, held, ask);
    },
  },
  {
    name: "stand in line",
    opens: [],
    run: async (parts) => await endAs(parts, parts.scene.held, new RunQueued(parts.scene.credential, 0)),
  },
  {
    name: "log in",
    opens: ["src/engine/login/record-use.ts#recordOpening"],
    run: async (parts) => {
      const { db, scene } = parts;
      const { run, lease } = scene.held;
      const turn = { runId: run.id, epoch: lease.epoch };
      const taken = await takeLogin(db, scene.credential, turn, 60_000);
      if (taken !== "taken") return taken;
      const use = {
        accountId: run.accountId,
        credentialId: scene.credential,
        strategyId: "strat_it",
        runId: run.id,
      };
      await recordOpening(engineOf(parts), use, "credential", async () => "opened");
      await saveLoginSession(db, {
        ...use,
        strategyVersion: 1,
        sealed: Buffer.from("sealed"),
        kid: parts.vault.kid,
        loginId: "login",
        expiresAtMs: Date.now() + 3_600_000,
      });
      return await releaseLogin(db, scene.credential, turn);
    },
  },
];
