import { sortProblems, type ConfigProblem } from "#domain/config-problem.ts";
import { checkConfig, type CheckedDocument, type KnownConfig } from "./check-config.ts";
import { readDocuments } from "./read-documents.ts";

export interface ConfigSource {
  readonly file: string;
  readonly text: string;
}

export interface CheckedSources {
  /** Those without a problem. */
  readonly checked: readonly CheckedDocument[];
  readonly problems: readonly ConfigProblem[];
}

/** `checkSources`, wherever it is done. */
export type CheckSources = (
  sources: readonly ConfigSource[],
  known: KnownConfig,
) => CheckedSources | Promise<CheckedSources>;

/** Reads documents and checks them against each other and against the known documents. Never throws because of their content. */
export function checkSources(sources: readonly ConfigSource[], known: KnownConfig): CheckedSources {
  const read = readDocuments(sources);
  const { checked, problems } = checkConfig(read.documents, known);
  return { checked, problems: sortProblems([...read.problems, ...problems]) };
}

export const CHECK_THREAD = "check-thread";

export interface CheckThreadData {
  readonly threadOf: typeof CHECK_THREAD;
  /** With the operator's own node types. */
  readonly nodeFiles: readonly string[];
}

/** A job for the check thread. */
export interface CheckJob {
  readonly sources: readonly ConfigSource[];
  readonly known: KnownConfig;
}
