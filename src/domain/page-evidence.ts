import { isJsonObject, type Json } from "./json.ts";

/** Why a page was looked at: a step failed, the node was done (`evidence: always`), or a `screenshot` step asked for it. */
const REASONS = ["failed", "done", "screenshot"] as const;
export type EvidenceReason = (typeof REASONS)[number];

/** What a page showed to a step of a browser, for operators. Secrets and the values of fields are removed. */
export interface PageEvidence {
  readonly reason: EvidenceReason;
  /** The step's place and words, as in the failure's message: `steps[2] (click button "Sign in")`. */
  readonly step: string;
  /** The page's URL without its query; null: it has none that is shown. */
  readonly url: string | null;
  /** What assistive technology sees, a line for each element, indented; no values of fields. */
  readonly outline: string;
  /** The last errors in the page's console, one line each. */
  readonly console: readonly string[];
  /** Origins of requests that the egress rules refused. */
  readonly refused: readonly { readonly origin: string; readonly count: number }[];
}

/** `picture`: a PNG of what was visible, with everything that may be secret covered; null: there is none. */
export interface NewEvidence extends PageEvidence {
  readonly picture: Buffer | null;
}

/** `picture`: the key of its object. */
export interface StoredEvidence extends PageEvidence {
  readonly picture: string | null;
}

/** The first word of its line in a step's log. */
const EVIDENCE_LINE = "evidence";

/** A line of a step's log that contains evidence. */
export const evidenceLine = (evidence: StoredEvidence): string =>
  JSON.stringify({ message: EVIDENCE_LINE, ...evidence });

/** Parses the output of `evidenceLine`; null: any other line. */
export function readEvidenceLine(line: Json): StoredEvidence | null {
  if (!isJsonObject(line) || line["message"] !== EVIDENCE_LINE || typeof line["outline"] !== "string")
    return null;
  return line as unknown as StoredEvidence;
}

/** For a terminal: a heading, and then lines. */
export function describeEvidence(evidence: PageEvidence): readonly string[] {
  const { step, url, outline, console, refused } = evidence;
  const part = (title: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
  return [
    `${step}${url === null ? "" : ` at ${url}`}`,
    ...part("The page has:", outline === "" ? [] : outline.split("\n")),
    ...part("Errors in its console:", console),
    ...part(
      "Refused requests:",
      refused.map(({ origin, count }) => `${origin} (${count})`),
    ),
  ];
}
