import type { ListedRun } from "#db/operators/operator-runs.ts";
import { listLastCounts, listTriedLogins, type Whose } from "#db/operators/whose.ts";
import type { Database } from "#db/connection/pool.ts";
import { customerOf } from "#domain/labels/customer.ts";
import { countWithErrors } from "#domain/records-with-errors.ts";
import { readSessionMetadata } from "#domain/session-metadata.ts";

export const readMetadata = (bytes: Buffer): Record<string, string> =>
  JSON.parse(bytes.toString("utf8")) as Record<string, string>;

/** Whose a credential or a session is; null: neither its session nor a run with it says so. */
export const customerOfLogin = ({ sessionMetadata, runMetadata }: Whose): string | null =>
  (sessionMetadata === null ? null : customerOf(readSessionMetadata(sessionMetadata))) ??
  (runMetadata === null ? null : customerOf(readMetadata(runMetadata)));

/** What lists say of runs besides what is in their rows. */
export interface RunMarks {
  readonly of: (run: ListedRun) => {
    /** Null: nobody says so. */
    readonly customer: string | null;
    readonly tested: string | null;
    readonly is_sign_in: boolean;
    readonly records_with_errors: number | null;
  };
}

/** Two queries for a page of runs, or none. */
export async function readMarks(db: Database, runs: readonly ListedRun[]): Promise<RunMarks> {
  const idsOf = (which: readonly ListedRun[]): readonly string[] => which.map(({ id }) => id);
  const [logins, counts] = await Promise.all([
    listTriedLogins(db, idsOf(runs.filter(({ blueprint }) => blueprint === null))),
    listLastCounts(db, idsOf(runs.filter(({ status }) => status === "completed"))),
  ]);
  return {
    of: (run) => {
      const login = logins.find(({ runId }) => runId === run.id);
      const counted = counts.find(({ runId }) => runId === run.id);
      const tallies = counted?.tallies.map((lines) => lines?.toString("utf8") ?? "") ?? [];
      return {
        customer: login ? customerOfLogin(login) : customerOf(readMetadata(run.metadata)),
        tested: login?.name ?? null,
        is_sign_in: login?.isSignIn ?? false,
        records_with_errors: counted ? countWithErrors([counted], tallies) : null,
      };
    },
  };
}
