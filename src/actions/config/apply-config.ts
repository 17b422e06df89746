import { createHash } from "node:crypto";
import { findAccountBySlug, listAccounts, saveAccount } from "#db/accounts.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { listStrategies, readAppliedDocuments } from "#db/config-documents.ts";
import { saveVersion, type SavedVersion } from "#db/signing/new-versions.ts";
import type { Database } from "#db/connection/pool.ts";
import { readTwoPersonRules, saveTwoPersonRule, type TwoPersonRule } from "#db/operators/two-person-rules.ts";
import { readAccount, readTwoPerson } from "#domain/account.ts";
import type { AuditActor } from "#domain/audit.ts";
import { readBranding, readLogo } from "#domain/branding.ts";
import { diffDocuments, type Difference } from "#domain/config-diff.ts";
import { formatProblem, type ConfigProblem } from "#domain/config-problem.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { texts, type Json, type JsonObject } from "#domain/json.ts";
import { describeNeed, type Need, type ProposedDocument } from "#domain/proposal.ts";
import { must } from "#lib/assert.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import type { KnownSecrets } from "./check-client-secret.ts";
import type { CheckedDocument, KnownConfig } from "./check-config.ts";
import { checkSources, type CheckedSources, type CheckSources, type ConfigSource } from "./check-sources.ts";
import { findNeeds } from "./find-needs.ts";
import { digestBase, requirePlannedBase } from "./plan-base.ts";
import { createProposal, type NewProposal } from "./create-proposal.ts";
import { followInTest } from "#actions/test-mode/test-documents.ts";
import { listKnownSecrets } from "#actions/secrets/list-secret-problems.ts";
import { readDocuments } from "./read-documents.ts";
import { keepText } from "./keep-text.ts";
import { lockApply } from "./lock-apply.ts";
import { checkSchedulesHere } from "./check-schedules.ts";
import { syncParts } from "./sync-parts.ts";
import { warnOfEndpoints } from "./warn-of-endpoints.ts";
import { warnOfLeftOut } from "./warn-of-left-out.ts";
import { warnOfUnreached } from "./warn-of-unreached.ts";

export interface PlannedChange {
  readonly change: "create" | "update" | "retire" | "unchanged";
  readonly kind: CheckedDocument["kind"];
  readonly account: string;
  readonly id: string;
}

export interface PlannedDocument extends PlannedChange {
  /** Changes from the current document to the new one; empty if it is new or unchanged. */
  readonly differences: readonly Difference[];
}

interface Changes<Change> {
  readonly ok: true;
  readonly changes: readonly Change[];
  /** Sentences about consequences of the changes. */
  readonly warnings: readonly string[];
}

interface Refused {
  readonly ok: false;
  readonly problems: readonly ConfigProblem[];
}

/** `proposal`: the documents need two admins. Nothing was changed, and `changes` is empty; null: they are applied. */
export type ApplyOutcome = (Changes<PlannedDocument> & { readonly proposal: NewProposal | null }) | Refused;

/** `needs`: sentences that say why `applyConfig` would propose the documents and apply none of them; empty: it would apply them. `base`: the state it is based on. */
export type PlanOutcome =
  | (Changes<PlannedDocument> & { readonly needs: readonly string[]; readonly base: string })
  | Refused;

/** How documents are checked. */
export interface CheckOptions {
  readonly check?: CheckSources;
  /** Secrets of accounts that come from the settings. */
  readonly inFile?: KnownSecrets;
  /** Sees the valid documents before they are applied, when no other call can change the current ones; what it throws rejects them. */
  readonly inspect?: (db: Database, documents: readonly CheckedDocument[]) => Promise<void>;
}

const NO_SECRETS: KnownSecrets = new Map();
const NOTHING_KNOWN: KnownConfig = { accounts: new Set(), strategies: new Map(), secrets: NO_SECRETS };

/**
 * Validates documents without a database: `latchkey validate`. `anyAccount`: their accounts are assumed to exist; `secrets`: those from
 * a file.
 */
export function validateConfig(
  sources: readonly ConfigSource[],
  {
    anyAccount = false,
    secrets = NO_SECRETS,
  }: { readonly anyAccount?: boolean; readonly secrets?: KnownSecrets } = {},
): CheckedSources {
  const known = { ...NOTHING_KNOWN, secrets };
  if (!anyAccount) return checkSources(sources, known);
  const named = readDocuments(sources).documents.flatMap(({ value }) => texts([value["account"] ?? null]));
  return checkSources(sources, { ...known, accounts: new Set(named) });
}

/**
 * Creates and updates the documents in one transaction, and changes nothing else. One invalid document rejects the whole set, with every
 * problem listed. Applying the same documents again changes nothing. If an account requires a second admin for one of the changes,
 * nothing is applied and the set is proposed. With `base` of a plan, throws OperatorError if the current documents are no longer those.
 */
export async function applyConfig(
  db: Database,
  signing: Signing,
  sources: readonly ConfigSource[],
  {
    actor = { kind: "cli" },
    check = checkSources,
    inFile = NO_SECRETS,
    inspect = async () => {},
    base,
  }: CheckOptions & { readonly actor?: AuditActor; readonly base?: string | undefined } = {},
): Promise<ApplyOutcome> {
  return await db.transaction(async (tx) => {
    await lockApply(tx);
    const plan = await makePlan(tx, await check(sources, await readKnown(tx, inFile)));
    if (!plan.ok) return plan;
    const { changes, warnings, needs } = plan;
    requirePlannedBase(changes, base);
    await inspect(
      tx,
      changes.map(({ checked }) => checked),
    );
    if (needs[0] !== undefined) {
      const { id: accountId } = must(await findAccountBySlug(tx, needs[0].account), "the account");
      const documents = changes.filter(({ change }) => change !== "unchanged").map(proposedOf);
      const content = { kind: "documents", documents, needs } as const;
      const proposal = await createProposal(tx, signing, actor, { accountId, content });
      return { ok: true, changes: [], warnings, proposal };
    }
    return {
      ok: true,
      changes: await applyInOrder(tx, signing, changes, { actor, proposalId: null }),
      warnings,
      proposal: null,
    };
  });
}

export type ConfirmedOutcome =
  | Changes<PlannedDocument>
  /** Sentences that say what has changed since it was proposed. Nothing was applied. */
  | { readonly ok: false; readonly stale: readonly string[] };

/**
 * Applies documents that two admins have confirmed, if the documents that they were planned on are still current. The transaction must
 * hold the apply lock.
 */
export async function applyConfirmed(
  tx: Database,
  signing: Signing,
  proposal: { readonly id: string; readonly documents: readonly ProposedDocument[] },
  { actor, check = checkSources, inFile = NO_SECRETS }: CheckOptions & { readonly actor: AuditActor },
): Promise<ConfirmedOutcome> {
  const sources = proposal.documents.map(({ kind, account, id, after }) => ({
    file: kind === "account" ? `account ${id}` : `${kind} ${account}/${id}`,
    text: after,
  }));
  const plan = await makePlan(tx, await check(sources, await readKnown(tx, inFile)));
  if (!plan.ok) return { ok: false, stale: plan.problems.map(formatProblem) };
  const based = new Map(
    proposal.documents.map((each) => [keyOf(each.kind, each.account, each.id), each.before]),
  );
  const stale = plan.changes.flatMap(({ before, checked: { kind, account, id } }) =>
    based.get(keyOf(kind, account, id)) === (before ?? null)
      ? []
      : [`The ${kind} ${kind === "account" ? id : `${account}/${id}`} has changed since it was proposed.`],
  );
  if (stale.length > 0) return { ok: false, stale };
  const changes = await applyInOrder(tx, signing, plan.changes, { actor, proposalId: proposal.id });
  return { ok: true, changes, warnings: plan.warnings };
}

async function applyInOrder(
  tx: Database,
  signing: Signing,
  steps: readonly Step[],
  by: { readonly actor: AuditActor; readonly proposalId: string | null },
): Promise<readonly PlannedDocument[]> {
  for (const step of steps) {
    if (step.change !== "unchanged") await applyDocument(tx, signing, by, step);
    await keepText(tx, step.checked);
  }
  return steps.map(plannedOf);
}

const proposedOf = ({ before, checked: { kind, account, id, document } }: Step): ProposedDocument => ({
  kind,
  account,
  id,
  before: before ?? null,
  after: JSON.stringify(document),
});

/** Like validateConfig, but against the service's documents: for the editor. Changes nothing. */
export async function checkConfigHere(
  db: Database,
  sources: readonly ConfigSource[],
  { check = checkSources, inFile = NO_SECRETS }: CheckOptions = {},
): Promise<CheckedSources> {
  return await check(sources, await readKnown(db, inFile));
}

/** Previews `applyConfig`: the changes, and the differences from the current documents. Changes nothing. */
export async function planConfig(
  db: Database,
  sources: readonly ConfigSource[],
  { check = checkSources, inFile = NO_SECRETS, inspect = async () => {} }: CheckOptions = {},
): Promise<PlanOutcome> {
  // No transaction stays open during validation.
  const plan = await makePlan(db, await check(sources, await readKnown(db, inFile)));
  if (!plan.ok) return plan;
  await inspect(
    db,
    plan.changes.map(({ checked }) => checked),
  );
  return {
    ok: true,
    changes: plan.changes.map(plannedOf),
    warnings: plan.warnings,
    needs: plan.needs.map(describeNeed),
    base: digestBase(plan.changes),
  };
}

interface Step {
  readonly change: PlannedChange["change"];
  readonly checked: CheckedDocument;
  /** The current document, as stored. */
  readonly before: string | undefined;
  /** This installation did not write the current document. */
  readonly isRefused: boolean;
}

const plannedOf = ({ change, before, checked: { kind, account, id, document } }: Step): PlannedDocument => ({
  change,
  kind,
  account,
  id,
  differences: before === undefined ? [] : diffDocuments(JSON.parse(before) as Json, document),
});

async function makePlan(
  tx: Database,
  { checked, problems }: CheckedSources,
): Promise<(Changes<Step> & { readonly needs: readonly Need[] }) | Refused> {
  if (problems.length > 0) return { ok: false, problems };
  const inForce = await readAppliedDocuments(tx);
  const applied = new Map(
    inForce.documents.map((row) => [keyOf(row.kind, row.account, row.id), row.document]),
  );
  const refused = new Set(inForce.refused.map(({ kind, account, id }) => keyOf(kind, account, id)));
  const rules = await readRules(tx, new Set(checked.map(({ account }) => account)));
  // Accounts first, then their documents, because in the files a document may precede its account.
  const inOrder = (["account", "strategy", "blueprint"] as const).flatMap((kind) =>
    checked.filter((each) => each.kind === kind),
  );
  const changes = inOrder.map((document): Step => {
    const key = keyOf(document.kind, document.account, document.id);
    const before = applied.get(key);
    const change = changeFrom(before, document, rules.get(document.account) ?? "off");
    return { change, checked: document, before, isRefused: refused.has(key) };
  });
  const refusedHere = await checkSchedulesHere(tx, changes);
  if (refusedHere.length > 0) return { ok: false, problems: refusedHere };
  const ofDocuments = changes.flatMap(({ change, checked: { warnings } }) =>
    change === "unchanged" ? [] : warnings.map(formatProblem),
  );
  const warnings = [
    ...ofDocuments,
    ...warnOfLeftOut(changes),
    ...(await warnOfUnreached(tx, changes)),
    ...(await warnOfEndpoints(tx, changes)),
  ];
  return { ok: true, changes, warnings, needs: await findNeeds(tx, changes, rules) };
}

function changeFrom(
  before: string | undefined,
  { kind, document, retired }: CheckedDocument,
  rule: TwoPersonRule,
): Step["change"] {
  if (before === undefined) return "create";
  // The signed row decides, not the document that is stored: where they differ, applying the document repairs it.
  const isKept = kind !== "account" || rule === ruleOf(document);
  if (isKept && before === JSON.stringify(document)) return "unchanged";
  return retired ? "retire" : "update";
}

const ruleOf = (account: JsonObject): TwoPersonRule => (readTwoPerson(account) ? "on" : "off");

/** By slug. */
async function readRules(
  db: Database,
  asked: ReadonlySet<string>,
): Promise<ReadonlyMap<string, TwoPersonRule>> {
  const accounts = (await listAccounts(db)).filter(({ slug }) => asked.has(slug));
  const rules = await readTwoPersonRules(
    db,
    accounts.map(({ id }) => id),
  );
  return new Map(accounts.map(({ id, slug }) => [slug, rules.get(id) ?? "off"]));
}

const keyOf = (kind: string, account: string, id: string): string => JSON.stringify([kind, account, id]);

async function readKnown(db: Database, inFile: KnownSecrets): Promise<KnownConfig> {
  const accounts = await listAccounts(db);
  const slugs = new Map(accounts.map((account) => [account.id, account.slug]));
  const strategies = await listStrategies(db);
  return {
    accounts: new Set(slugs.values()),
    secrets: await listKnownSecrets(db, inFile),
    variableLogins: new Map(
      strategies.flatMap(({ accountId, strategy: { id, login } }) =>
        login["client_secret_env"] === undefined ? [] : [[`${slugs.get(accountId)}/${id}`, login] as const],
      ),
    ),
    strategies: new Map(
      strategies.map(({ accountId, strategy }) => [
        `${slugs.get(accountId)}/${strategy.id}`,
        {
          fieldKeys: strategy.fields.map((field) => field.key),
          hosts: strategy.hosts,
          loginType: strategy.login.type,
        },
      ]),
    ),
  };
}

async function applyDocument(
  tx: Database,
  signing: Signing,
  { actor, proposalId }: { readonly actor: AuditActor; readonly proposalId: string | null },
  { change, checked }: Step,
): Promise<void> {
  const { kind, id } = checked;
  const document = JSON.stringify(checked.document);
  const saved = await saveDocument(tx, actor, checked, document);
  await syncParts(tx, signing, { accountId: saved.accountId, actor }, checked);
  await followInTest(tx, signing, { accountId: saved.accountId, actor }, checked);
  await recordAudit(tx, signing.audit, {
    accountId: saved.accountId,
    actor,
    action: "config.apply",
    subjectId: id,
    detail: {
      kind,
      change,
      version: saved.version,
      ...saved.audited,
      ...(proposalId === null ? {} : { proposal: proposalId }),
      sha256: createHash("sha256").update(document).digest("hex"),
    },
  });
}

/** Accounts have no versions: their document is replaced. */
async function saveDocument(
  tx: Database,
  actor: AuditActor,
  { kind, account, id, retired, document: tree }: CheckedDocument,
  document: string,
): Promise<
  | ({ readonly accountId: string } & SavedVersion)
  | {
      readonly accountId: string;
      readonly version: null;
      readonly audited: SavedVersion["audited"] | null;
    }
> {
  if (kind === "account") {
    const accountId = await saveAccount(tx, {
      ...readAccount(tree),
      branding: readBranding(tree),
      logo: readLogo(tree),
      id: newId(ID_PREFIX.account),
      document,
      testOf: null,
    });
    const rule = (await readTwoPersonRules(tx, [accountId])).get(accountId);
    const audited =
      rule === ruleOf(tree) ? null : await saveTwoPersonRule(tx, accountId, readTwoPerson(tree));
    return { accountId, version: null, audited };
  }
  const operatorId = actor.kind === "operator" ? actor.id : null;
  const { id: accountId } = must(await findAccountBySlug(tx, account), "the document's account");
  const ownId = kind === "strategy" ? id : newId(ID_PREFIX.blueprint);
  const version = { kind, accountId, name: id, newId: ownId, document, retired, operatorId };
  return { accountId, ...(await saveVersion(tx, version)) };
}
