import type { Statement } from "#db/connection/pool.ts";

/** The last claim of a run that was committed. */
interface Claim {
  readonly epoch: number;
  readonly by: string;
}

const CLAIMS = /^(admit_plain_runs|admit_runs|claim_left_runs_)/;
/** It says how a request ended, which is true for any holder of the run: it is fenced by the write's own epoch. */
const IS_UNFENCED = /^end_write$/;
const JOINS = /^\s*insert into worker \(/;

const NOTHING = (): void => {};

/**
 * What the statements of all processes say of leases, and what the server answered: no write under a lease may have an effect once another
 * claim of the run was committed.
 */
export class LeaseWatch {
  readonly #claims = new Map<string, Claim>();
  readonly #members = new Map<string, string>();
  readonly breaches: string[] = [];

  /** The id under which a process joined the workers last. */
  memberOf(process: string): string | undefined {
    return this.#members.get(process);
  }

  /** A statement has been done. Gives what its COMMIT makes true. */
  see(process: string, { name = "", text, values = [] }: Statement, rows: readonly unknown[]): () => void {
    if (JOINS.test(text)) this.#members.set(process, String(values[0]));
    if (CLAIMS.test(name)) return () => this.#note(process, rows as readonly ClaimedRow[]);
    if (rows.length > 0 && !IS_UNFENCED.test(name)) this.#check(process, name, values, rows);
    return NOTHING;
  }

  #note(by: string, rows: readonly ClaimedRow[]): void {
    for (const { id, epoch } of rows) if (id !== null) this.#claims.set(id, { epoch, by });
  }

  /** The first three values of a write under leases are run, owner and epoch, or lists of them. */
  #check(process: string, name: string, values: readonly unknown[], rows: readonly unknown[]): void {
    const [runs, owners, epochs] = values;
    if (isRun(runs) && isWorker(owners)) return this.#compare(process, name, runs, Number(epochs));
    if (!Array.isArray(runs) || !Array.isArray(owners) || !Array.isArray(epochs)) return;
    if (!isRun(runs[0]) || !isWorker(owners[0])) return;
    const changed = new Set((rows as readonly { readonly runId?: string }[]).map(({ runId }) => runId));
    for (const [at, run] of runs.entries())
      if (changed.has(run)) this.#compare(process, name, run, Number(epochs[at]));
  }

  #compare(process: string, name: string, run: string, epoch: number): void {
    const claim = this.#claims.get(run);
    if (claim === undefined || claim.epoch <= epoch) return;
    this.breaches.push(
      `${process} has done ${name} to ${run} with epoch ${epoch}, which ${claim.by} has claimed with ${claim.epoch}`,
    );
  }
}

interface ClaimedRow {
  readonly id: string | null;
  readonly epoch: number;
}

const isRun = (value: unknown): value is string => typeof value === "string" && value.startsWith("run_");
const isWorker = (value: unknown): value is string => typeof value === "string" && value.startsWith("wrk_");
