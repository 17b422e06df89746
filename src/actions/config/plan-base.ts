import { createHash } from "node:crypto";
import { OperatorError } from "#actions/operator-error.ts";

/** A planned document with the current one, as stored; undefined: there is none. */
interface Planned {
  readonly before: string | undefined;
  readonly checked: { readonly kind: string; readonly account: string; readonly id: string };
}

/** The state that a plan was made on: a hash of the current documents that it names, or of their absence. */
export function digestBase(steps: readonly Planned[]): string {
  const parts = steps.map(({ before, checked: { kind, account, id } }) =>
    JSON.stringify([kind, account, id, before ?? null]),
  );
  return createHash("sha256").update(JSON.stringify(parts.toSorted())).digest("hex");
}

/** Throws OperatorError if the current documents are not those of the plan; undefined: any are accepted. */
export function requirePlannedBase(steps: readonly Planned[], base: string | undefined): void {
  if (base === undefined || base === digestBase(steps)) return;
  throw new OperatorError(
    "The plan is out of date: one of its documents has been changed since, or the files are not those that were planned. Nothing was changed. Plan again.",
  );
}
