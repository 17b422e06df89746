import { watchEvents } from "./account-events.ts";
import { readRunStatus } from "./blueprint-runs.ts";
import { triggerBlueprint } from "./blueprints.ts";
import { cancelRun } from "./cancel-run.ts";
import { createCredentialSession, readCredentialSession } from "./credential-sessions.ts";
import { createEmbeddedSession, readEmbeddedSession } from "./embedded-credential-sessions.ts";
import { deleteCredential } from "./credentials.ts";
import { readLiveness, readReadiness } from "./health.ts";
import type { Operation } from "#contract/operation.ts";
import { watchRun } from "./run-events.ts";
import { readRunResults } from "./run-results.ts";
import { deleteSchedule, putSchedule, readSchedule } from "./schedules.ts";
import { putTestClock, readTestClock } from "./test-clock.ts";
import { triggerBlueprintBatch } from "./trigger-batch.ts";
import { readTriggerSchema } from "./trigger-schema.ts";

/** Every operation: the interface's in its order, then ours. */
export const OPERATIONS: readonly Operation[] = [
  createCredentialSession,
  readCredentialSession,
  deleteCredential,
  triggerBlueprint,
  readRunStatus,
  readRunResults,
  createEmbeddedSession,
  readEmbeddedSession,
  cancelRun,
  watchRun,
  triggerBlueprintBatch,
  readTriggerSchema,
  watchEvents,
  putSchedule,
  readSchedule,
  deleteSchedule,
  putTestClock,
  readTestClock,
  readLiveness,
  readReadiness,
];
