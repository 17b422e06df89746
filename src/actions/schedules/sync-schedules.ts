import { findAccountById } from "#db/accounts.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { lookUpDocument, type BlueprintVersion } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { deleteSchedule, listDocumentSchedules, type Schedule } from "#db/schedules/schedules.ts";
import type { AuditActor } from "#domain/audit.ts";
import { Problem } from "#domain/problem.ts";
import { readJitter } from "#domain/schedule-jitter.ts";
import type { DocumentSchedule } from "#domain/schedule-documents.ts";
import { must } from "#lib/assert.ts";
import { readCron } from "#lib/cron.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { saveSchedule } from "./save-schedule.ts";
import { triggerBytes } from "./trigger-bytes.ts";

/**
 * Makes the schedules of a Blueprint's document, which was just applied, those that it has now, by their keys. One that the API made for the
 * same Blueprint is taken over. While the Blueprint is retired they stay as they are: their next time pauses them. Throws OperatorError.
 */
export async function syncSchedules(
  tx: Database,
  signing: Signing,
  applied: { readonly accountId: string; readonly key: string; readonly actor: AuditActor },
  wanted: readonly DocumentSchedule[],
): Promise<void> {
  const { accountId, actor } = applied;
  for (const schedule of await listDocumentSchedules(tx, accountId, applied.key)) {
    if (wanted.some(({ key }) => key === schedule.key)) continue;
    await deleteSchedule(tx, schedule.id);
    await recordAudit(tx, signing.audit, {
      accountId,
      actor,
      action: "schedule.delete",
      subjectId: schedule.id,
      detail: { blueprint: schedule.blueprintKey },
    });
  }
  if (wanted.length === 0) return;
  const version = must(await lookUpDocument(tx, "blueprint", accountId, applied.key), "the Blueprint");
  if (version.retired) return;
  const account = must(await findAccountById(tx, accountId), "the account");
  for (const each of wanted) {
    const writer = {
      account,
      keyId: null,
      actor,
      isFromDocument: true,
      authorize: (existing: Schedule) => refuseOther(existing, applied.key),
    };
    await saveSchedule(tx, signing.audit, writer, askedOf(version, each)).catch((error: unknown) => {
      throw error instanceof Problem ? refusal(version, each, error.message) : error;
    });
  }
}

function askedOf(version: BlueprintVersion, schedule: DocumentSchedule) {
  const read = readCron(schedule.cron, schedule.timeZone);
  if ("problem" in read) throw refusal(version, schedule, `\`${read.wrong}\` ${read.problem}`);
  if (readJitter(schedule.jitter) === undefined)
    throw refusal(version, schedule, "`jitter` must be at most 1d.");
  return { ...schedule, version, times: read.times, trigger: triggerBytes(schedule.trigger) };
}

const refusal = ({ blueprint }: BlueprintVersion, { key }: DocumentSchedule, reason: string): OperatorError =>
  new OperatorError(
    `The schedule ${key} of the Blueprint ${blueprint.account}/${blueprint.key} was refused: ${reason} Nothing was changed.`,
  );

function refuseOther({ key, blueprintKey }: Schedule, ownKey: string): void {
  if (blueprintKey !== ownKey)
    throw new OperatorError(
      `The account has a schedule with the key ${key} already, of the Blueprint ${blueprintKey}. Choose another key. Nothing was changed.`,
    );
}
