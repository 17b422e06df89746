/**
 * Why a deciding row is not used. `unsigned`: it has no MAC. `forged`: what it says is not what was signed. `outdated`: it was
 * signed once, and the audit log names a later one. `deleted`: the audit log names it, and it is not there.
 */
export type RowFault = "unsigned" | "forged" | "outdated" | "deleted";

const FAULTS: Readonly<Record<RowFault, string>> = {
  unsigned: "has no signature of this installation",
  forged: "was changed: its signature does not match its content",
  outdated: "is older than the newest one that the audit log names",
  deleted: "is missing, though the audit log records it",
};

/** A row of the database that decides something was not written by this installation. It is not used. */
export class RowRefused extends Error {
  override readonly name = "RowRefused";
  readonly kind: string;
  /** The row's key, its parts joined by slashes. No secret. */
  readonly id: string;
  readonly fault: RowFault;

  constructor(kind: string, id: string, fault: RowFault) {
    super(`${describeRefused({ kind, id, fault })} It was not used.`);
    this.kind = kind;
    this.id = id;
    this.fault = fault;
  }
}

/** For people: a sentence that names the row. */
export function describeRefused(row: {
  readonly kind: string;
  readonly id: string;
  readonly fault: RowFault;
}): string {
  return `The row ${row.kind} ${row.id} of the database ${FAULTS[row.fault]}.`;
}
