import { readRunStatus } from "#contract/blueprint-runs.ts";
import { triggerBlueprint } from "#contract/blueprints.ts";
import { cancelRun } from "#contract/cancel-run.ts";
import { createCredentialSession, readCredentialSession } from "#contract/credential-sessions.ts";
import { createEmbeddedSession, readEmbeddedSession } from "#contract/embedded-credential-sessions.ts";
import { deleteCredential } from "#contract/credentials.ts";
import { readLiveness, readReadiness } from "#contract/health.ts";
import type { Operation } from "#contract/operation.ts";
import { watchRun } from "#contract/run-events.ts";
import { readRunResults } from "#contract/run-results.ts";
import { readTriggerSchema } from "#contract/trigger-schema.ts";

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
  readTriggerSchema,
  readLiveness,
  readReadiness,
];
