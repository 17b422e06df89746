import { readRunStatus } from "./blueprint-runs.ts";
import { triggerBlueprint } from "./blueprints.ts";
import { createCredentialSession, readCredentialSession } from "./credential-sessions.ts";
import { deleteCredential } from "./credentials.ts";
import { readLiveness, readReadiness } from "./health.ts";
import type { Operation } from "./operation.ts";
import { readRunResults } from "./run-results.ts";

/** Every operation, in the interface's order. */
export const OPERATIONS: readonly Operation[] = [
  createCredentialSession,
  readCredentialSession,
  deleteCredential,
  triggerBlueprint,
  readRunStatus,
  readRunResults,
  readLiveness,
  readReadiness,
];
