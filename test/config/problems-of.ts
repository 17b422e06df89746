import { checkConfig, type KnownConfig } from "#actions/config/check-config.ts";
import { readDocuments } from "#actions/config/read-documents.ts";
import { formatProblem, sortProblems } from "#domain/config-problem.ts";

export const nothingKnown: KnownConfig = { accounts: new Set(), strategies: new Map(), secrets: new Map() };

/** Reads and checks files as `latchkey validate` does. */
export function check(
  sources: readonly { readonly file: string; readonly text: string }[],
  known: KnownConfig = nothingKnown,
) {
  const read = readDocuments(sources);
  const { checked, problems } = checkConfig(read.documents, known);
  return { checked, problems: sortProblems([...read.problems, ...problems]).map(formatProblem) };
}

/** The problems of one file, without its name. */
export function problemsOf(text: string, known?: KnownConfig): readonly string[] {
  return check([{ file: "f", text }], known).problems.map((problem) => problem.slice("f:".length));
}
