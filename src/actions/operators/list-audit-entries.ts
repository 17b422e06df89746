import { exportAudit, type ExportLine } from "#actions/audit/export-audit.ts";
import { accountIdsOf, requireAccount } from "#actions/operator-error.ts";
import type { Needs } from "#actions/services.ts";
import { verifyPart, type AuditPlace } from "#actions/audit/verify-audit.ts";
import { listChains } from "#db/audit-entries.ts";
import { listSeenEntries, type SeenEntry } from "#db/operators/operator-audit.ts";
import { findOperatorId } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { normaliseOperatorName } from "#domain/operator.ts";
import { makePage, readPage } from "#domain/page-cursor.ts";
import { invalidField, notFound } from "#domain/problem.ts";

export interface AuditQuery {
  cursor?: string;
  limit?: number;
  account?: string;
  action?: string;
  operator?: string;
  subject?: string;
  since?: string;
  until?: string;
}

/** A page of the audit log, newest first. Throws Problem 422, OperatorError. */
export async function listAuditEntries(db: Database, query: AuditQuery, limit: readonly string[] | null) {
  const page = readPage(query);
  const accountIds = query.account === undefined ? limit : await accountIdsOf(db, query.account, limit);
  const operator =
    query.operator === undefined ? null : await findOperatorId(db, normaliseOperatorName(query.operator));
  if (operator === undefined) throw invalidField("operator", "There is no such operator.");
  const rows = await listSeenEntries(
    db,
    {
      accountIds,
      action: query.action ?? null,
      operatorId: operator,
      subjectId: query.subject ?? null,
      since: query.since ?? null,
      until: query.until ?? null,
    },
    page,
  );
  return makePage(rows, page, ({ occurredAt, id }) => ({ atMs: occurredAt.getTime(), id }), showEntry);
}

const showEntry = (entry: SeenEntry) => ({
  id: entry.id,
  account: entry.account,
  occurred_at: entry.occurredAt.toISOString(),
  action: entry.action,
  actor_kind: entry.actorKind,
  actor_id: entry.actorId,
  operator: entry.operator,
  subject_id: entry.subjectId,
  run_id: entry.runId,
  detail: JSON.parse(entry.detail) as unknown,
  sequence: entry.sequence,
});

/** Every chain there is, or those of some accounts. */
export const listAuditChains = async (db: Database, limit: readonly string[] | null) =>
  (await listChains(db))
    .filter(({ chain }) => limit === null || limit.includes(chain))
    .map(({ chain, account, exportedBefore }) => ({ chain, account, exported_before: exportedBefore }));

/** Entries that one request checks: some tenths of a second. */
const PART = 2_000;

/** Verifies the next part of a chain, so that the caller sees the progress and no request takes long. Throws Problem 404, 422. */
export async function verifyNextPart(
  services: Needs<"db" | "signing">,
  chain: string,
  after: string | undefined,
) {
  if (!(await listChains(services.db)).some((each) => each.chain === chain)) throw notFound("Chain");
  const start = after === undefined ? null : readPlace(after);
  const { db, signing } = services;
  const { checked, next, findings } = await verifyPart(db, signing.audit, chain, start, PART);
  return {
    checked,
    next: next && [next.sequence, next.id, Buffer.from(next.hash).toString("hex")].join("."),
    findings: findings.map((each) => ({ ...each })),
  };
}

/** Parses the value of `next`. It comes from the caller, and a forged one only misleads that caller. Throws Problem 422. */
function readPlace(text: string): AuditPlace {
  const [, sequence, id = "", hash = ""] =
    /^(\d{1,15})\.(aud_[0-9A-Za-z]{1,60})\.([0-9a-f]{64})$/.exec(text) ?? [];
  if (sequence === undefined) throw invalidField("after", "`after` must be the `next` of the previous part.");
  return { sequence: Number(sequence), id, hash: Buffer.from(hash, "hex") };
}

/** Lines of JSON, as `latchkey audit export --json` prints them; `since` in UTC with milliseconds. Throws OperatorError. */
export async function exportEntries(
  services: Needs<"db" | "signing">,
  request: { readonly account: string | null; readonly since: string | null },
): Promise<AsyncIterable<string>> {
  if (request.account !== null) await requireAccount(services.db, request.account);
  return writeLines(exportAudit(services.db, services.signing.audit, request, { isGrowing: true }));
}

async function* writeLines(lines: AsyncIterable<ExportLine>): AsyncIterable<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}
