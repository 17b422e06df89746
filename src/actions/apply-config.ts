import { createHash } from "node:crypto";
import { findAccountBySlug, listAccounts, saveAccount } from "#db/accounts.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { listAppliedDocuments, listStrategies } from "#db/config-documents.ts";
import { saveBlueprintVersion, saveStrategyVersion, type SavedVersion } from "#db/new-versions.ts";
import type { Database } from "#db/pool.ts";
import { readAccount } from "#domain/account.ts";
import type { AuditActor } from "#domain/audit.ts";
import { readBranding, readLogo } from "#domain/branding.ts";
import { diffDocuments, type Difference } from "#domain/config-diff.ts";
import type { ConfigProblem } from "#domain/config-problem.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { texts, type Json } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import type { KnownSecrets } from "./config/check-client-secret.ts";
import type { CheckedDocument, KnownConfig } from "./config/check-config.ts";
import {
  checkSources,
  type CheckedSources,
  type CheckSources,
  type ConfigSource,
} from "./config/check-sources.ts";
import { listKnownSecrets } from "./list-secret-problems.ts";
import { readDocuments } from "./config/read-documents.ts";
import { warnOfUnreached } from "./config/warn-of-unreached.ts";

export interface PlannedChange {
  readonly change: "create" | "update" | "retire" | "unchanged";
  readonly kind: CheckedDocument["kind"];
  readonly account: string;
  readonly id: string;
}

export interface PlannedDocument extends PlannedChange {
  /** From what is in force to what would be; empty for a document that is new or unchanged. */
  readonly differences: readonly Difference[];
}

type Outcome<Change> =
  /** `warnings`: sentences for people about what the changes bring with them. */
  | { readonly ok: true; readonly changes: readonly Change[]; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

export type ApplyOutcome = Outcome<PlannedChange>;

/** How documents are checked. */
export interface CheckOptions {
  readonly check?: CheckSources;
  /** Secrets of accounts that the settings give. */
  readonly inFile?: KnownSecrets;
}

const NO_SECRETS: KnownSecrets = new Map();
const NOTHING_KNOWN: KnownConfig = { accounts: new Set(), strategies: new Map(), secrets: NO_SECRETS };

/**
 * Checks documents by themselves: `latchkey validate`. No database. `anyAccount`: their accounts are taken to exist; `secrets`: those
 * that a file gives.
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
 * Creates and updates what the documents name, in one transaction, and leaves everything else alone. One wrong document
 * refuses the whole set, with every problem listed. Applying the same documents again changes nothing.
 */
export async function applyConfig(
  db: Database,
  signing: Signing,
  sources: readonly ConfigSource[],
  {
    actor = { kind: "cli" },
    check = checkSources,
    inFile = NO_SECRETS,
  }: CheckOptions & { readonly actor?: AuditActor } = {},
): Promise<ApplyOutcome> {
  return await db.transaction(async (tx) => {
    // Two at once follow each other: the second plans on what the first has made.
    await tx.query(`select pg_advisory_xact_lock(hashtext('latchkey apply'))`);
    const plan = await makePlan(tx, await check(sources, await readKnown(tx, inFile)));
    if (!plan.ok) return plan;
    const { warnings } = plan;
    const changes: PlannedChange[] = [];
    for (const step of plan.changes) {
      if (step.change !== "unchanged") await applyDocument(tx, signing, actor, step);
      changes.push(changeOf(step));
    }
    return { ok: true, changes, warnings };
  });
}

/** As validateConfig, against what the service has: an editor's check while its document is typed. Changes nothing. */
export async function checkConfigHere(
  db: Database,
  sources: readonly ConfigSource[],
  { check = checkSources, inFile = NO_SECRETS }: CheckOptions = {},
): Promise<CheckedSources> {
  return await check(sources, await readKnown(db, inFile));
}

/** What `applyConfig` would do with the same documents, and where they differ from what is in force. Changes nothing. */
export async function planConfig(
  db: Database,
  sources: readonly ConfigSource[],
  { check = checkSources, inFile = NO_SECRETS }: CheckOptions = {},
): Promise<Outcome<PlannedDocument>> {
  // No transaction is held open for as long as checking takes.
  const plan = await makePlan(db, await check(sources, await readKnown(db, inFile)));
  if (!plan.ok) return plan;
  const changes = plan.changes.map((step) => ({
    ...changeOf(step),
    differences:
      step.before === undefined ? [] : diffDocuments(JSON.parse(step.before) as Json, step.checked.document),
  }));
  return { ok: true, changes, warnings: plan.warnings };
}

interface Step {
  readonly change: PlannedChange["change"];
  readonly checked: CheckedDocument;
  /** The document in force, as it is stored. */
  readonly before: string | undefined;
}

const changeOf = ({ change, checked: { kind, account, id } }: Step): PlannedChange => ({
  change,
  kind,
  account,
  id,
});

async function makePlan(tx: Database, { checked, problems }: CheckedSources): Promise<Outcome<Step>> {
  if (problems.length > 0) return { ok: false, problems };
  const applied = new Map(
    (await listAppliedDocuments(tx)).map((row) => [keyOf(row.kind, row.account, row.id), row.document]),
  );
  // Accounts first, then what belongs to them: a document may come before its account in the files.
  const inOrder = (["account", "strategy", "blueprint"] as const).flatMap((kind) =>
    checked.filter((each) => each.kind === kind),
  );
  const changes = inOrder.map((document): Step => {
    const before = applied.get(keyOf(document.kind, document.account, document.id));
    return { change: changeFrom(before, document), checked: document, before };
  });
  return { ok: true, changes, warnings: await warnOfUnreached(tx, changes) };
}

function changeFrom(before: string | undefined, { document, retired }: CheckedDocument): Step["change"] {
  if (before === undefined) return "create";
  if (before === JSON.stringify(document)) return "unchanged";
  return retired ? "retire" : "update";
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
  actor: AuditActor,
  { change, checked }: Step,
): Promise<void> {
  const { kind, id } = checked;
  const document = JSON.stringify(checked.document);
  const saved = await saveDocument(tx, actor, checked, document);
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
  | { readonly accountId: string; readonly version: null; readonly audited: null }
> {
  if (kind === "account") {
    const accountId = await saveAccount(tx, {
      ...readAccount(tree),
      branding: readBranding(tree),
      logo: readLogo(tree),
      id: newId(ID_PREFIX.account),
      document,
    });
    return { accountId, version: null, audited: null };
  }
  const operatorId = actor.kind === "operator" ? actor.id : null;
  const { id: accountId } = must(await findAccountBySlug(tx, account), "the document's account");
  const saved =
    kind === "strategy"
      ? await saveStrategyVersion(tx, { accountId, id, document, retired, operatorId })
      : await saveBlueprintVersion(tx, {
          newId: newId(ID_PREFIX.blueprint),
          accountId,
          key: id,
          document,
          retired,
          operatorId,
        });
  return { accountId, ...saved };
}
