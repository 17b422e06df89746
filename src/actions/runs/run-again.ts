import { recordAudit } from "#db/audit-entries.ts";
import { findAccountById, type BrandedAccount } from "#db/accounts.ts";
import { findCachedVersion, lookUpDocument, type BlueprintVersion } from "#db/config-documents.ts";
import { lookUpCredential } from "#db/credentials/credentials.ts";
import { findDetailedRun, listCredentialsOfRun, type DetailedRun } from "#db/operators/operator-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import { listRunInputs, type RunInput } from "#db/runs/runs.ts";
import type { AuditActor } from "#domain/audit.ts";
import { Problem } from "#domain/problem.ts";
import { ignoredKeys } from "#domain/trigger-routing.ts";
import { must } from "#lib/assert.ts";
import { writesOf } from "./blueprint-writes.ts";
import { requireRun } from "./require-run.ts";
import { metadataOf, rerunBody } from "./rerun-body.ts";
import type { Answer } from "#actions/replay-or-run.ts";
import type { Needs } from "#actions/services.ts";
import { routingTableOf, triggerRun } from "./trigger-run.ts";

/** The preview of a rerun. */
export interface Again {
  readonly run: DetailedRun;
  readonly account: BrandedAccount;
  /** The current version, which the new run would execute. null: a test login. */
  readonly version: BlueprintVersion | null;
  /** Ids of its nodes that write to other systems. */
  readonly writes: readonly string[];
  /** Inputs and metadata that the current version does not define. */
  readonly ignored: readonly string[];
  readonly credentialIds: readonly string[];
  readonly inputs: readonly RunInput[];
  /** Why it can't be rerun; null: it can. */
  readonly obstacle: string | null;
}

/** Previews a rerun of a run of any account, by its `run_…` id or run key. Throws OperatorError. */
export async function planRerun(db: Database, reference: string): Promise<Again> {
  const { id } = await requireRun(db, reference);
  const run = must(await findDetailedRun(db, id), "the run");
  const account = must(await findAccountById(db, run.accountId), "the run's account");
  const version =
    run.blueprint === null
      ? null
      : ((await lookUpDocument(db, "blueprint", run.accountId, run.blueprint)) ?? null);
  const [credentialIds, inputs] = await Promise.all([credentialsInOrder(db, run), listRunInputs(db, id)]);
  const names = [...inputs.map(({ refKey }) => refKey), ...Object.keys(metadataOf(run))];
  return {
    run,
    account,
    version,
    credentialIds,
    inputs,
    writes: version === null ? [] : writesOf(version.blueprint),
    ignored: version === null ? [] : ignoredKeys(names, routingTableOf(version)),
    obstacle: await findObstacle(db, run, version, credentialIds),
  };
}

/** The credentials in the order of their slots, so that they fill the same slots again. */
async function credentialsInOrder(db: Database, run: DetailedRun): Promise<readonly string[]> {
  const used = await listCredentialsOfRun(db, run.id);
  const { accountId, blueprintId: id, blueprintVersion: version } = run;
  if (id === null || version === null) return used.map((each) => each.credentialId);
  const then = must(
    await findCachedVersion(db, "blueprint", { accountId, id, version }),
    "the run's Blueprint",
  );
  return then.credentials.flatMap(({ slot }) => {
    const credential = used.find((each) => each.slot === slot);
    return credential === undefined ? [] : [credential.credentialId];
  });
}

async function findObstacle(
  db: Database,
  run: DetailedRun,
  version: BlueprintVersion | null,
  credentialIds: readonly string[],
): Promise<string | null> {
  if (version === null) return "A test login can't be rerun. Test the login of its credential again.";
  if (run.endedAt === null) return "The run has not ended yet. Wait until it has, or cancel it.";
  if (run.purgedAt !== null)
    return "The run's inputs and metadata were purged, so it can't be rerun. Trigger a new run.";
  if (version.retired)
    return `The Blueprint "${version.blueprint.key}" is retired. Restore it first, or trigger another one.`;
  for (const id of credentialIds)
    if (!(await lookUpCredential(db, { accountId: run.accountId, id })))
      return `The credential ${id} was deleted. Have the end user fill in a new form, and trigger a run with the new credential.`;
  return null;
}

export interface RerunRequest {
  /** The version that the caller expects to be current. */
  readonly version: number | null;
  /** Whether it may write to other systems again. */
  readonly mayWrite: boolean;
}

/** Runs the effect in one transaction with its idempotency record, if there is one. */
type Within = (accountId: string, effect: (tx: Database) => Promise<Answer>) => Promise<Answer>;

/**
 * Starts a rerun on the current version, with the old run's inputs and the checks of a trigger. Files are copied first: each run owns its
 * objects, which are purged with it. Throws Problem, OperatorError.
 */
export async function runAgain(
  services: Needs<"db" | "blobs" | "signing">,
  by: { readonly actor: AuditActor; readonly operatorId?: string | null },
  reference: string,
  wish: RerunRequest,
  within: Within,
): Promise<Answer> {
  const again = await planRerun(services.db, reference);
  refuse(again, wish);
  const { run, account } = again;
  const version = must(again.version, "the version in force");
  const staged = new Set<string>();
  const body = await rerunBody(services, again, staged);
  try {
    return await within(account.id, async (tx) => {
      const triggerer = { account, keyId: null, operatorId: by.operatorId, againOf: run.id };
      const { id, run_key } = JSON.parse((await triggerRun(tx, triggerer, version, body)).body);
      await recordAudit(tx, services.signing.audit, {
        accountId: account.id,
        actor: by.actor,
        action: "run.again",
        subjectId: id,
        runId: id,
        detail: { of: run.id, version: version.version, previous_version: run.blueprintVersion },
      });
      staged.clear();
      return { status: 201, body: JSON.stringify({ id, run_key, blueprint_version: version.version }) };
    });
  } finally {
    // After a replay or a refusal no run has the copies. After a broken COMMIT the outcome is unknown, and the sweep removes orphans.
    if (staged.size > 0) await services.blobs.remove([...staged]);
  }
}

/** Throws Problem 409. */
function refuse({ obstacle, version, writes }: Again, wish: RerunRequest): void {
  if (obstacle !== null) throw new Problem("conflict", obstacle);
  if (wish.version !== null && wish.version !== version?.version)
    throw new Problem(
      "conflict",
      `The current version is now ${version?.version}, not ${wish.version}. Check it, and decide again.`,
    );
  if (writes.length > 0 && !wish.mayWrite)
    throw new Problem(
      "conflict",
      `It would write to other systems again (${writes.join(", ")}). Allow it with \`may_write\` (\`--may-write\` on the command line).`,
    );
}
