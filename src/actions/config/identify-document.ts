import type { JsonObject } from "#domain/json.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { nearestName } from "#domain/config-nearest.ts";

export const DOCUMENT_KINDS = ["account", "strategy", "blueprint"] as const;
export type DocumentKind = (typeof DOCUMENT_KINDS)[number];

const FIRST_KEY = "the first key says what a document is: `account`, `strategy` or `blueprint`";

const isKind = (key: string | undefined): key is DocumentKind =>
  (DOCUMENT_KINDS as readonly (string | undefined)[]).includes(key);

/** The first key of a document determines its kind (docs/decisions/0030). With a misplaced key the rest is still checked. */
export function identifyDocument(document: JsonObject): {
  readonly kind: DocumentKind | null;
  readonly findings: readonly ConfigFinding[];
} {
  const keys = Object.keys(document);
  const first = keys[0];
  // Every document has `account`, so the other two keys are more specific.
  const meant =
    keys.find((key) => key === "strategy" || key === "blueprint") ?? keys.find((key) => key === "account");
  if (first === undefined) return { kind: null, findings: [{ path: [], message: `is empty; ${FIRST_KEY}` }] };
  if (isKind(first) && (first === meant || first !== "account")) return { kind: first, findings: [] };
  if (isKind(meant) && meant !== "account") {
    return {
      kind: meant,
      findings: [{ path: [meant], at: "key", message: `${FIRST_KEY}; move ${quote(meant)} to the top` }],
    };
  }
  const nearest = nearestName(first, DOCUMENT_KINDS);
  const remedy = nearest
    ? `; did you mean ${quote(nearest)}?`
    : meant
      ? `; move ${quote(meant)} to the top`
      : "";
  return {
    kind: null,
    findings: [
      {
        path: [first],
        at: "key",
        message: `unknown kind of document ${quote(first)}; ${FIRST_KEY}${remedy}`,
      },
    ],
  };
}
