import { createHash } from "node:crypto";
import {
  findStrategy,
  lookUpDocument,
  type BlueprintVersion,
  type StrategyVersion,
} from "#db/config-documents.ts";
import { findCredentials, lookUpCredential } from "#db/credentials/credentials.ts";
import { insertRun, insertRunTogether, type NewRun, type NewRunInput } from "#db/runs/new-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { isWellFormedName } from "#domain/names.ts";
import { invalidField, notFound, Problem, type ProblemDetail } from "#domain/problem.ts";
import {
  fillSlots,
  missingMetadata,
  readCredentialIds,
  routeTrigger,
  type BodyValue,
  type RoutedTrigger,
  type RoutingTable,
  type TriggerBody,
} from "#domain/trigger-routing.ts";
import { groupValues } from "#domain/run-group.ts";
import type { QueueOptions } from "#domain/queue-options.ts";
import type { Value } from "#domain/value.ts";
import { assert, must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { newId, newRunKey } from "#lib/new-id.ts";
import { currentTraceparent } from "#lib/tracing.ts";
import { refKeyOf } from "#nodes/define-node.ts";
import { checkInput } from "#nodes/types/input.ts";
import type { Place } from "./account-quotas.ts";
import { authorizeBlueprint } from "#actions/keys/authenticate.ts";
import { recordOf, type Answer, type Claim } from "#actions/replay-or-run.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** The origin of a run: the caller of an API key, or an operator who tries a Blueprint or repeats a run. */
export interface Initiator extends Pick<Caller, "account"> {
  readonly keyId: string | null;
  readonly operatorId?: string | null | undefined;
  readonly againOf?: string;
  readonly scheduleId?: string;
  /** Of the request's caller: the trace that the run belongs to, unless a span is in progress. */
  readonly traceparent?: string | null;
}

/** The Blueprint that a trigger names. Throws Problem 404, then 403 (docs/api.md#order-of-checks). */
export async function findTriggeredBlueprint(
  services: Needs<"db">,
  caller: Caller,
  blueprintKey: string,
): Promise<BlueprintVersion> {
  const version = await lookUpDocument(services.db, "blueprint", caller.account.id, blueprintKey);
  if (!version || version.retired) throw notFound("Blueprint");
  authorizeBlueprint(caller, blueprintKey);
  return version;
}

/** The keys of a body that this Blueprint declares. */
export function routingTableOf(version: BlueprintVersion): RoutingTable {
  return {
    inputRefKeys: new Set(inputNodes(version).map(refKeyOf)),
    metadata: version.blueprint.metadata,
  };
}

const inputNodes = (version: BlueprintVersion) =>
  version.blueprint.nodes.filter((node) => node.type === "input");

/**
 * `POST /blueprints/{blueprintKey}/trigger`, inside the caller's transaction. The 202 is sent after COMMIT. `place` null: an operator's
 * run, which no quota refuses.
 */
export async function triggerRun(
  tx: Database,
  caller: Initiator,
  version: BlueprintVersion,
  body: TriggerBody,
  place: Place | null = null,
  queue: QueueOptions | null = null,
): Promise<Answer> {
  const accountId = caller.account.id;
  const run = await planRun(caller, version, body, {
    credentials: async (ids) => await findCredentials(tx, accountId, ids),
    strategy: async (id) => await findStrategy(tx, accountId, id),
    queue,
  });
  await place?.take(inputBytes(run));
  await failpoint("trigger.before_insert");
  assert(await insertRun(tx, run), "the run's credentials are locked");
  await failpoint("trigger.after_insert");
  return accepted(run);
}

interface Together {
  readonly claim: Claim | null;
  readonly place: Place;
  readonly queue?: QueueOptions | null;
}

/**
 * The same for the runs of concurrent requests, together with the claim of their keys, in one transaction. null: nothing was
 * written, and the run needs a separate transaction.
 */
export async function triggerRunTogether(
  services: Needs<"db" | "signing">,
  caller: Initiator,
  version: BlueprintVersion,
  body: TriggerBody,
  { claim, place, queue = null }: Together,
): Promise<Answer | null> {
  const { db } = services;
  const accountId = caller.account.id;
  const run = await planRun(caller, version, body, {
    credentials: async (ids) => {
      const found = await Promise.all(ids.map(async (id) => await lookUpCredential(db, { accountId, id })));
      return found.filter((credential) => credential !== undefined);
    },
    strategy: async (id) => await lookUpDocument(db, "strategy", accountId, id),
    queue,
  });
  await place.take(inputBytes(run));
  const answer = accepted(run);
  await failpoint("trigger.before_insert");
  return (await insertRunTogether(db, run, claim && recordOf(services, claim, answer))) ? answer : null;
}

/** Whether a trigger with this body would be accepted now; its credentials. Throws Problem 400, 422. */
export async function checkTrigger(
  tx: Database,
  caller: Initiator,
  version: BlueprintVersion,
  body: TriggerBody,
): Promise<readonly string[]> {
  const accountId = caller.account.id;
  const run = await planRun(caller, version, body, {
    credentials: async (ids) => await findCredentials(tx, accountId, ids),
    strategy: async (id) => await findStrategy(tx, accountId, id),
    queue: null,
  });
  return run.credentials.map(({ credentialId }) => credentialId);
}

const inputBytes = ({ inputs }: NewRun): number => inputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

const accepted = (run: NewRun): Answer => ({
  status: 202,
  body: JSON.stringify({ id: run.id, run_key: run.runKey, status: "queued" }),
});

/** Looks up the objects that the body refers to, inside the transaction or before it; and what the headers ask. */
interface Sources {
  readonly queue: QueueOptions | null;
  credentials(
    ids: readonly string[],
  ): Promise<readonly { readonly id: string; readonly strategyId: string }[]>;
  strategy(id: string): Promise<StrategyVersion | undefined>;
}

/** The run that a body requests. Throws Problem 400, 422 (docs/api.md#order-of-checks). */
async function planRun(
  caller: Initiator,
  version: BlueprintVersion,
  body: TriggerBody,
  sources: Sources,
): Promise<NewRun> {
  const table = routingTableOf(version);
  const routed = routeTrigger(body, table);
  refuseMissingMetadata(routed, table);
  refuseFilesElsewhere(routed);
  const credentials = await findSlotCredentials(sources, version, routed);
  const inputs = readInputs(version, routed);
  return {
    id: newId(ID_PREFIX.run),
    runKey: newRunKey(),
    accountId: caller.account.id,
    blueprintId: version.id,
    blueprintVersion: version.version,
    apiKeyId: caller.keyId,
    operatorId: caller.operatorId ?? null,
    againOf: caller.againOf ?? null,
    scheduleId: caller.scheduleId ?? null,
    name: readRunName(routed),
    metadata: JSON.stringify(
      Object.fromEntries([...routed.metadata].map(([name, value]) => [name, textOf(value)])),
    ),
    ignoredKeys: routed.ignoredKeys,
    timeoutMs: version.blueprint.timeoutMs,
    retentionMs: version.blueprint.retentionMs ?? caller.account.retentionMs,
    queue: sources.queue,
    group: groupOf(version, routed, credentials),
    traceparent: currentTraceparent() ?? caller.traceparent ?? null,
    credentials,
    inputs,
  };
}

/** Those of one group count together towards the Blueprint's `concurrency` (docs/blueprints.md#concurrency); null: it has none. */
function groupOf(
  { id, blueprint: { concurrency } }: BlueprintVersion,
  routed: RoutedTrigger,
  credentials: NewRun["credentials"],
): string | null {
  if (concurrency === null) return null;
  if (concurrency.keys.length === 0) return id;
  const values = groupValues(concurrency, {
    metadata: new Map([...routed.metadata].map(([name, value]) => [name, textOf(value)])),
    credentials: new Map(credentials.map(({ slot, credentialId }) => [slot, credentialId])),
  });
  // Of any length, and the caller's: a purge must not leave them behind.
  return `${id}/${createHash("sha256").update(JSON.stringify(values)).digest("hex")}`;
}

/** Strings unchanged, everything else as JSON text. Spec, Top-level key routing. */
const textOf = (value: BodyValue): string => (value.kind === "file" ? "" : value.text);

/** Spec, POST /blueprints/{blueprintKey}/trigger 2: a required metadata item that is omitted is a `400`, one detail each. */
function refuseMissingMetadata(routed: RoutedTrigger, table: RoutingTable): void {
  const missing = missingMetadata(routed, table);
  if (missing.length === 0) return;
  const details = missing.map<ProblemDetail>((name) => ({
    message: `The required metadata item "${name}" is missing.`,
    code: "invalid_input_data",
    field: name,
  }));
  throw new Problem("validation_error", "Required metadata is missing.", { status: 400, details });
}

/** docs/api.md#multipart: a file part for a reserved or metadata key is `422`. */
function refuseFilesElsewhere(routed: RoutedTrigger): void {
  const named: [string, BodyValue][] = [
    ...routed.credentials.map(({ field, value }): [string, BodyValue] => [field, value]),
    ...routed.metadata,
  ];
  if (routed.runName) named.push(["run_name", routed.runName]);
  for (const [field, value] of named) {
    if (value.kind === "file") throw invalidField(field, `"${field}" must be text, not a file.`);
    if (field === "run_name" || routed.metadata.has(field)) {
      if (value.text.includes("\u0000")) throw invalidField(field, `"${field}" must not contain U+0000.`);
    }
  }
}

function readRunName(routed: RoutedTrigger): string | null {
  const name = routed.runName && textOf(routed.runName);
  if (name !== null && !isWellFormedName(name)) {
    throw invalidField("run_name", "`run_name` must have at most 255 characters.");
  }
  return name;
}

/** Spec, POST /blueprints/{blueprintKey}/trigger 1: credentials of the account, each in a slot of its strategy. */
async function findSlotCredentials(
  sources: Sources,
  version: BlueprintVersion,
  routed: RoutedTrigger,
): Promise<NewRun["credentials"]> {
  const asked = new Map<string, string>();
  for (const { field, value } of routed.credentials) {
    const { ids, malformed } = readCredentialIds(value);
    if (malformed !== null)
      throw invalidField(field, `\`${field}\` must name credentials of this account (cred_…).`);
    for (const id of ids) if (!asked.has(id)) asked.set(id, field);
  }
  const found =
    asked.size === 0
      ? new Map()
      : new Map((await sources.credentials([...asked.keys()])).map((row) => [row.id, row]));
  for (const [id, field] of asked) {
    if (!found.has(id))
      throw invalidField(field, `\`${field}\` names a credential that does not exist in this account.`);
  }
  const credentials = [...asked.keys()].map((id) => must(found.get(id), "a found credential"));
  const { filled, problem } = fillSlots(version.blueprint.credentials, credentials);
  if (problem !== null) throw invalidField(routed.credentials[0]?.field ?? "credential_id", problem);
  return await Promise.all(
    filled.map(async ({ slot, credential }) => {
      const strategy = must(await sources.strategy(credential.strategyId), "the slot's strategy");
      return {
        slot,
        credentialId: credential.id,
        strategyId: credential.strategyId,
        strategyVersion: strategy.version,
        concurrency: strategy.strategy.concurrency,
      };
    }),
  );
}

/** docs/api.md#triggers: checked here only when the node has `required` or a `schema`. */
function readInputs(version: BlueprintVersion, routed: RoutedTrigger): readonly NewRunInput[] {
  const details: ProblemDetail[] = [];
  for (const node of inputNodes(version)) {
    const refKey = refKeyOf(node);
    for (const problem of checkInput(node.config, valueOf(routed.inputs.get(refKey)))) {
      const field = problem.field === null ? refKey : `${refKey}.${problem.field}`;
      details.push({ message: problem.message, code: "invalid_input_data", field });
    }
  }
  if (details.length > 0)
    throw new Problem("validation_error", "An input of the Blueprint is invalid.", { details });
  return [...routed.inputs].map(([refKey, value]) => newInput(refKey, value));
}

function valueOf(value: BodyValue | undefined): Value {
  if (!value) return { form: "absent" };
  if (value.kind !== "file") return { form: "text", text: value.text };
  const { filename, contentType, sizeBytes } = value;
  return { form: "file", filename, contentType, sizeBytes, open: () => (async function* () {})() };
}

function newInput(refKey: string, value: BodyValue): NewRunInput {
  if (value.kind === "file") {
    const { blobKey, filename, contentType, sizeBytes, sha256 } = value;
    return { refKey, kind: "file", content: null, blobKey, filename, contentType, sizeBytes, sha256 };
  }
  const content = Buffer.from(value.text, "utf8");
  const kind = value.kind === "string" ? "text" : "json";
  return {
    refKey,
    kind,
    content,
    blobKey: null,
    filename: null,
    contentType: null,
    sizeBytes: content.length,
    sha256: null,
  };
}
