import type { MutationKind } from "./sites.ts";

/** A site whose change no test can notice, or need not. */
export interface Equivalent {
  readonly file: string;
  readonly kind: MutationKind;
  /** Words of the line that is changed. */
  readonly line: string;
  readonly reason: string;
}

/** Survivors that were looked at: nobody could tell the changed program from ours, or what changes is not promised. */
export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: "src/service/assemble.ts",
    kind: "await removed",
    line: "await news.close()",
    reason:
      "notifications are hints: a process that misses the last ones of another finds the runs by its next look",
  },
  {
    file: "src/worker/chores.ts",
    kind: "guard removed",
    line: "workerId === null || this.#arePoolsSaved",
    reason: "the same ids are written once more, or for no worker; a worker that joins writes them itself",
  },
  {
    file: "src/engine/local/recording.ts",
    kind: "redaction removed",
    line: "await redact.body(asked.body)",
    reason: "records and files are redacted before a request can be made of them; this is a second net",
  },
];
