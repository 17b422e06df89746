export type AuditFault =
  /** The content was changed. */
  | "changed"
  /** An entry was removed. */
  | "missing"
  /** An entry that this installation did not write. */
  | "inserted"
  /** A genuine entry at another place than its own. */
  | "moved"
  /** The end of the chain is gone. */
  | "truncated"
  /** Written, and not chained for longer than a worker takes. */
  | "unchained";

export interface AuditFinding {
  readonly fault: AuditFault;
  /** The first number at which the chain is wrong; null: an entry that is not chained yet. */
  readonly sequence: number | null;
  readonly message: string;
}
