import { closeAudit } from "#actions/audit/close-audit.ts";
import { fireSchedule } from "#actions/schedules/fire-schedules.ts";
import { purgeOldRuns } from "#actions/runs/purge-runs.ts";
import { noteExpired } from "#actions/sessions/note-expired-sessions.ts";
import { admitRuns } from "#db/runs/admission.ts";
import { claimLeftRuns } from "#db/runs/left-runs.ts";
import { callOverdueQueued } from "#db/runs/lines.ts";
import { wakePolls } from "#db/runs/polls.ts";
import { passRunTimers } from "#db/runs/run-timers.ts";
import {
  beat,
  deleteWorker,
  freeOrphanedRuns,
  listWorkers,
  releaseOrphans,
  takeOverDeadWorkers,
} from "#db/runs/workers.ts";
import { DEAD_WORKER, WORKER } from "./scene.ts";
import type { Transaction } from "./transaction.ts";

const LOCKED_ACCOUNT = "its worker looks again, and waits for nobody's account meanwhile";

export const OF_WORKERS: readonly Transaction[] = [
  {
    name: "admit runs",
    takesSeveral: true,
    opens: ["src/db/runs/admission.ts#admitPlain", "src/db/runs/admission.ts#admitByChoice"],
    mayBeLockedOut: LOCKED_ACCOUNT,
    run: async ({ db, scene }) => await admitRuns(db, scene.caller.account.id, WORKER, 10),
  },
  {
    name: "take runs that were left",
    takesSeveral: true,
    opens: [],
    run: async ({ db, scene }) => await claimLeftRuns(db, scene.caller.account.id, WORKER, 10, "plain"),
  },
  { name: "beat", opens: [], run: async ({ db }) => await beat(db, DEAD_WORKER) },
  {
    name: "take over from the dead",
    takesSeveral: true,
    opens: ["src/db/runs/workers.ts#takeOverDeadWorkers"],
    run: async ({ db }) => await takeOverDeadWorkers(db, await listWorkers(db)),
  },
  {
    name: "leave as a worker",
    takesSeveral: true,
    opens: [],
    run: async ({ db }) => await deleteWorker(db, WORKER),
  },
  {
    name: "free runs of nobody",
    takesSeveral: true,
    opens: [],
    run: async ({ db }) => await freeOrphanedRuns(db),
  },
  {
    name: "release orphans",
    takesSeveral: true,
    opens: [],
    run: async ({ db, scene: { held, lost } }) =>
      await releaseOrphans(
        db,
        WORKER,
        [lost, held].map(({ lease }) => lease),
      ),
  },
  {
    name: "call overdue runs",
    takesSeveral: true,
    opens: [],
    run: async ({ db }) => await callOverdueQueued(db),
  },
  {
    name: "pass timers of runs",
    takesSeveral: true,
    opens: [],
    run: async ({ db }) => await passRunTimers(db),
  },
  {
    name: "fire a schedule",
    opens: ["src/actions/schedules/fire-schedules.ts#fireSchedule"],
    run: async (parts) => await fireSchedule(parts, parts.scene.schedule),
  },
  { name: "wake polls", takesSeveral: true, opens: [], run: async ({ db }) => await wakePolls(db) },
  {
    name: "purge what is due",
    takesSeveral: true,
    opens: ["src/db/runs/purges.ts#purgeDueRuns"],
    run: async (parts) => await purgeOldRuns(parts),
  },
  {
    name: "close the audit log",
    opens: ["src/actions/audit/close-audit.ts#closeBatch"],
    run: async (parts) => await closeAudit(parts),
  },
  {
    name: "note what has expired",
    opens: [
      "src/actions/sessions/note-expired-sessions.ts#noteAll",
      "src/actions/config/create-proposal.ts#expireProposals",
    ],
    run: async (parts) => await noteExpired(parts),
  },
];
