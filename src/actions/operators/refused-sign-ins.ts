import { recordAudit } from "#db/audit-entries.ts";
import { forgetOldSignIns } from "#db/operators/operator-throttle.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import type { OidcRefusal } from "#domain/problem.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { describeError, type Log } from "#lib/log.ts";

/** `throttled`: beyond the limit, so that the answer revealed nothing. */
type RefusedSignIn = OidcRefusal | "password" | "throttled";

const UNKNOWN_NAMES_BETWEEN = 1_000;

/**
 * Refused sign-ins that strangers can cause in any number: with unknown emails, with an invalid `state`, or beyond the throttle. They are
 * counted here and recorded once a minute, because the audit log is never purged. A killed process loses the last minute of them.
 */
export class RefusedSignIns {
  readonly #db: Database;
  readonly #keys: AuditKeys;
  readonly #log: Log;
  /** By operator, or `unknown`; there are no more subjects than operators. */
  #counts = new Map<string, Map<RefusedSignIn, number>>();
  #timer: NodeJS.Timeout | null = null;
  #unknownNames = 0;

  constructor(db: Database, keys: AuditKeys, log: Log) {
    this.#db = db;
    this.#keys = keys;
    this.#log = log;
  }

  /** `operatorId` null: unknown operator. */
  count(operatorId: string | null, reason: RefusedSignIn, times = 1): void {
    const subject = operatorId ?? "unknown";
    const reasons = this.#counts.get(subject) ?? new Map<RefusedSignIn, number>();
    this.#counts.set(subject, reasons.set(reason, (reasons.get(reason) ?? 0) + times));
    this.#timer ??= setTimeout(() => void this.write(), limits.refusedSignInsMs).unref();
  }

  /** One entry per subject. If writing fails, counting continues. */
  async write(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const counts = this.#counts;
    this.#counts = new Map();
    for (const [subjectId, reasons] of counts) {
      try {
        await recordAudit(this.#db, this.#keys, {
          accountId: null,
          actor: { kind: "service" },
          action: "operator.sign_in_failed",
          subjectId,
          detail: { count: sum(reasons.values()), ...Object.fromEntries(reasons) },
        });
      } catch (error) {
        this.#log.error(describeError(error), "counted sign-ins could not be recorded");
        for (const [reason, times] of reasons)
          this.count(subjectId === "unknown" ? null : subjectId, reason, times);
      }
    }
    await this.#forgetOld();
  }

  /** Limits the number of counters for unknown names. */
  countUnknownName(): void {
    if (++this.#unknownNames % UNKNOWN_NAMES_BETWEEN === 0) void this.#forgetOld();
  }

  async #forgetOld(): Promise<void> {
    await forgetOldSignIns(this.#db, limits.unknownNamesMax).catch((error: unknown) =>
      this.#log.error(describeError(error), "old counters of sign-ins could not be removed"),
    );
  }

  /** Records the remaining counts. */
  async close(): Promise<void> {
    await this.write();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}

function sum(numbers: Iterable<number>): number {
  let all = 0;
  for (const number of numbers) all += number;
  return all;
}
