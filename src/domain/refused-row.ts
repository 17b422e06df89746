/**
 * Why a signed row is not used. `unsigned`: it has no MAC. `forged`: its content differs from what was signed. `outdated`: it was
 * once valid, but the audit log has a later version. `deleted`: the audit log has it, but it is missing.
 */
export type RowFault = "unsigned" | "forged" | "outdated" | "deleted";

const FAULTS: Readonly<Record<RowFault, string>> = {
  unsigned: "has no signature of this installation",
  forged: "was changed: its signature does not match its content",
  outdated: "is older than the newest version in the audit log",
  deleted: "is missing, although it is in the audit log",
};

/** This installation did not write a row that must be signed. The row is not used. */
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

/** A message that names the row. */
export function describeRefused(row: {
  readonly kind: string;
  readonly id: string;
  readonly fault: RowFault;
}): string {
  return `The row ${row.kind} ${row.id} of the database ${FAULTS[row.fault]}.`;
}
