import { quoteList } from "#domain/config-problem.ts";
import type { JsonObject } from "#domain/json.ts";
import type { CheckedDocument } from "./check-config.ts";

/** An account has no versions to return to, and is often rewritten as one line for the sake of other documents in the file. */
export function warnOfLeftOut(
  steps: readonly { readonly checked: CheckedDocument; readonly before: string | undefined }[],
): readonly string[] {
  return steps.flatMap((step) => {
    if (step.checked.kind !== "account" || step.before === undefined) return [];
    const gone = Object.keys(JSON.parse(step.before) as JsonObject).filter(
      (key) => !Object.hasOwn(step.checked.document, key),
    );
    return gone.length === 0
      ? []
      : [
          `the document of the account ${step.checked.id} omits ${quoteList(gone)}, which the current version has; write the whole document, or remove it from the files`,
        ];
  });
}
