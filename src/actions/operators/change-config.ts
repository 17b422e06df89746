import {
  applyConfig,
  checkConfigHere,
  planConfig,
  type CheckOptions,
  type PlannedChange,
} from "#actions/config/apply-config.ts";
import { checkInThread } from "#actions/config/check-in-thread.ts";
import type { ConfigSource } from "#actions/config/check-sources.ts";
import type { NewProposal } from "#actions/config/create-proposal.ts";
import { describeSecretProblem, listSecretProblems } from "#actions/secrets/list-secret-problems.ts";
import type { Needs } from "#actions/services.ts";
import { formatProblem, type ConfigProblem } from "#domain/config-problem.ts";
import { pinEdition } from "#domain/edition.ts";
import type { JsonObject } from "#domain/json.ts";
import type { Language } from "#domain/language.ts";
import { Problem } from "#domain/problem.ts";
import { describeBlueprint } from "./describe-blueprint.ts";
import { describeForm } from "./describe-form.ts";
import { findConflict, requireBase } from "./base-version.ts";
import { getVersion, requireDocument, showDifference, type DocumentName } from "./get-documents.ts";
import { actorOf, type OperatorCaller } from "./operator-caller.ts";

const showProblem = ({ file, line, column, path, message }: ConfigProblem) => ({
  file,
  line,
  column,
  path,
  message,
});

/** Documents are parsed in a thread that can be terminated; callers queue. */
const checkOf = ({ secretSources }: Needs<"secretSources">, { sessionId }: OperatorCaller): CheckOptions => ({
  check: async (sources, known) => await checkInThread(sessionId, sources, known),
  inFile: secretSources.inFile,
});

/** Returns every problem of the documents, and the valid ones. Changes nothing. */
export async function checkTyped(
  services: Needs<"db" | "secretSources">,
  caller: OperatorCaller,
  documents: readonly ConfigSource[],
  language: Language,
) {
  const { checked, problems } = await checkConfigHere(services.db, documents, checkOf(services, caller));
  return {
    problems: problems.map(showProblem),
    warnings: checked.flatMap(({ warnings }) => warnings).map(showProblem),
    documents: checked.map((each) => ({
      kind: each.kind,
      account: each.account,
      id: each.id,
      file: each.file,
      graph: each.kind === "blueprint" ? describeBlueprint(each.document).graph : null,
      form: each.kind === "strategy" ? describeForm(each.document, language) : null,
    })),
  };
}

/** Previews the changes. Changes nothing. */
export async function planTyped(
  services: Needs<"db" | "secretSources">,
  caller: OperatorCaller,
  documents: readonly ConfigSource[],
  baseVersion?: number,
) {
  let conflict: Awaited<ReturnType<typeof findConflict>> = null;
  const plan = await planConfig(services.db, documents, {
    ...checkOf(services, caller),
    inspect: async (db, checked) => {
      if (baseVersion !== undefined) conflict = await findConflict(db, checked, baseVersion);
    },
  });
  if (!plan.ok)
    return { problems: plan.problems.map(showProblem), changes: [], conflict: null, warnings: [], needs: [] };
  return {
    problems: [],
    conflict,
    warnings: [...plan.warnings],
    needs: [...plan.needs],
    changes: plan.changes.map(({ differences, ...change }) => ({
      ...showChange(change),
      differences: differences.map(showDifference),
    })),
  };
}

const showChange = ({ change, kind, account, id }: PlannedChange) => ({ change, kind, account, id });

/**
 * Applies all documents in one transaction, or proposes them. Throws Problem 409 if `baseVersion` is given and not current, Problem 422
 * with every problem, OperatorError.
 */
export async function applyTyped(
  services: Needs<"db" | "secretSources" | "signing">,
  caller: OperatorCaller,
  documents: readonly ConfigSource[],
  baseVersion?: number,
) {
  const { db, signing, secretSources: sources } = services;
  const outcome = await applyConfig(db, signing, documents, {
    ...checkOf(services, caller),
    actor: actorOf(caller),
    inspect: async (tx, checked) => {
      if (baseVersion !== undefined) await requireBase(tx, checked, baseVersion);
    },
  });
  if (!outcome.ok) throw refusal(outcome.problems);
  // Not an error, as on the command line: another process may have the secret.
  const problems = await listSecretProblems(db, sources);
  return {
    changes: outcome.changes.map(showChange),
    proposal: outcome.proposal && showProposed(outcome.proposal),
    warnings: [...outcome.warnings, ...problems.map((each) => `${describeSecretProblem(each)}.`)],
  };
}

const showProposed = ({ id, reasons, confirmationsWanted, expiresAt }: NewProposal) => ({
  id,
  reasons: [...reasons],
  confirmations_wanted: confirmationsWanted,
  expires_at: expiresAt.toISOString(),
});

function refusal(problems: readonly ConfigProblem[]): Problem {
  const count = problems.length === 1 ? "One problem" : `${problems.length} problems`;
  return new Problem("validation_error", `${count}; nothing was changed.`, {
    details: problems.map((problem) => ({
      message: formatProblem(problem),
      code: "invalid_input_data",
      field: problem.path === "" ? undefined : problem.path,
    })),
  });
}

/** Publishes an earlier version's document again, as a new version. Throws Problem 404, 422, OperatorError. */
export async function publishVersion(
  services: Needs<"db" | "secretSources" | "signing">,
  caller: OperatorCaller,
  name: DocumentName,
  version: string,
) {
  const { yaml } = await getVersion(services.db, name, { version, against: undefined });
  return await applyTyped(services, caller, [sourceOf(name, yaml)]);
}

/** Retires a document: no new runs or sessions; existing ones continue. Throws Problem 404, 422, OperatorError. */
export async function setRetired(
  services: Needs<"db" | "secretSources" | "signing">,
  caller: OperatorCaller,
  name: DocumentName,
  retired: boolean,
) {
  const { document } = await requireDocument(services.db, name);
  const { retired: _before, ...rest } = pinEdition(JSON.parse(document) as JsonObject);
  const changed = retired ? { ...rest, retired } : rest;
  return await applyTyped(services, caller, [sourceOf(name, JSON.stringify(changed))]);
}

const sourceOf = ({ kind, name }: DocumentName, text: string): ConfigSource => ({
  file: `${kind} ${name}`,
  text,
});
