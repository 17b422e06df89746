import {
  applyConfig,
  checkConfigHere,
  planConfig,
  type CheckOptions,
  type PlannedDocument,
} from "#actions/config/apply-config.ts";
import { checkInThread } from "#actions/config/check-in-thread.ts";
import type { ConfigSource } from "#actions/config/check-sources.ts";
import type { NewProposal } from "#actions/config/create-proposal.ts";
import { withRetired } from "#actions/config/source-text.ts";
import { describeSecretProblem, listSecretProblems } from "#actions/secrets/list-secret-problems.ts";
import type { Needs } from "#actions/services.ts";
import { formatProblem, type ConfigProblem } from "#domain/config-problem.ts";
import type { Language } from "#domain/language.ts";
import { invalidField, Problem } from "#domain/problem.ts";
import { findAccountById, findAccountBySlug } from "#db/accounts.ts";
import type { Brand } from "#domain/branding.ts";
import { readStrategy, type Strategy } from "#domain/strategy.ts";
import { readBrand } from "#actions/sessions/hosted-session.ts";
import { describeBlueprint } from "./describe-blueprint.ts";
import { describeForm } from "./describe-form.ts";
import { cutKnown, namesOfLimit, requireDocumentsWithin } from "./account-limit.ts";
import { findConflict, requireBase } from "./base-version.ts";
import { getVersion, requireDocument, showDifference, yamlOf, type DocumentName } from "./get-documents.ts";
import { actorOf, holderOf, type Principal } from "./operator-caller.ts";

const showProblem = ({ file, line, column, path, message }: ConfigProblem) => ({
  file,
  line,
  column,
  path,
  message,
});

/** Documents are parsed in a thread that can be terminated; callers queue. */
const checkOf = ({ db, secretSources }: Needs<"db" | "secretSources">, caller: Principal): CheckOptions => ({
  check: async (sources, known) =>
    await checkInThread(holderOf(caller), sources, await cutKnown(db, caller, known)),
  inFile: secretSources.inFile,
});

/** Returns every problem of the documents, and the valid ones. Changes nothing. */
export async function checkTyped(
  services: Needs<"db" | "secretSources">,
  caller: Principal,
  documents: readonly ConfigSource[],
  language: Language,
) {
  const { checked, problems } = await checkConfigHere(services.db, documents, checkOf(services, caller));
  await requireDocumentsWithin(services.db, caller, checked);
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

/** A checked strategy, and the appearance of its account. Changes nothing. Throws Problem 422 with every problem. */
export async function previewTyped(
  services: Needs<"db" | "secretSources">,
  caller: Principal,
  text: string,
): Promise<{ readonly strategy: Strategy; readonly brand: Brand }> {
  const { db } = services;
  const source = { file: "document.yaml", text };
  const { checked, problems } = await checkConfigHere(db, [source], checkOf(services, caller));
  if (problems.length > 0) throw refusal(problems);
  await requireDocumentsWithin(db, caller, checked);
  const [document, ...others] = checked;
  if (document?.kind !== "strategy" || others.length > 0)
    throw invalidField("text", "Give the document of one strategy.");
  const account = await findAccountBySlug(db, document.account);
  const branded = account && (await findAccountById(db, account.id));
  return {
    strategy: readStrategy(document.document),
    // Of an account that is not published yet, only the name is known.
    brand: readBrand(branded ?? { name: document.account, branding: null, isTest: false }),
  };
}

/** Previews the changes. Changes nothing. */
export async function planTyped(
  services: Needs<"db" | "secretSources">,
  caller: Principal,
  documents: readonly ConfigSource[],
  baseVersion?: number,
) {
  let conflict: Awaited<ReturnType<typeof findConflict>> = null;
  const plan = await planConfig(services.db, documents, {
    ...checkOf(services, caller),
    inspect: async (db, checked) => {
      await requireDocumentsWithin(db, caller, checked);
      if (baseVersion !== undefined) conflict = await findConflict(db, checked, baseVersion);
    },
  });
  if (!plan.ok)
    return {
      problems: plan.problems.map(showProblem),
      changes: [],
      conflict: null,
      warnings: [],
      base: null,
      needs: [],
    };
  return {
    problems: [],
    conflict,
    warnings: [...plan.warnings],
    base: plan.base,
    needs: [...plan.needs],
    changes: plan.changes.map(showChange),
  };
}

const showChange = ({ change, kind, account, id, differences }: PlannedDocument) => ({
  change,
  kind,
  account,
  id,
  differences: differences.map(showDifference),
});

/**
 * Applies all documents in one transaction, or proposes them. Throws Problem 409 if `baseVersion` is given and not current, Problem 422
 * with every problem, OperatorError if `base` of a plan is given and not current.
 */
export async function applyTyped(
  services: Needs<"db" | "secretSources" | "signing">,
  caller: Principal,
  documents: readonly ConfigSource[],
  {
    baseVersion,
    base,
  }: { readonly baseVersion?: number | undefined; readonly base?: string | undefined } = {},
) {
  const { db, signing, secretSources: sources } = services;
  const outcome = await applyConfig(db, signing, documents, {
    ...checkOf(services, caller),
    actor: actorOf(caller),
    base,
    inspect: async (tx, checked) => {
      await requireDocumentsWithin(tx, caller, checked);
      if (baseVersion !== undefined) await requireBase(tx, checked, baseVersion);
    },
  });
  if (!outcome.ok) throw refusal(outcome.problems);
  // Not an error, as on the command line: another process may have the secret.
  const names = await namesOfLimit(db, caller);
  const problems = (await listSecretProblems(db, sources)).filter(
    ({ account }) => names === null || names.includes(account),
  );
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
  caller: Principal,
  name: DocumentName,
  version: string,
) {
  const { yaml } = await getVersion(services.db, name, { version, against: undefined });
  return await applyTyped(services, caller, [sourceOf(name, yaml)]);
}

/** Retires a document: no new runs or sessions; existing ones continue. Throws Problem 404, 422, OperatorError. */
export async function setRetired(
  services: Needs<"db" | "secretSources" | "signing">,
  caller: Principal,
  name: DocumentName,
  retired: boolean,
) {
  const row = await requireDocument(services.db, name);
  const text = withRetired(await yamlOf(services.db, name.kind, row), retired);
  return await applyTyped(services, caller, [sourceOf(name, text)]);
}

const sourceOf = ({ kind, name }: DocumentName, text: string): ConfigSource => ({
  file: `${kind} ${name}`,
  text,
});
