import { createHash } from "node:crypto";
import { findAccountDocument, findTestAccount, saveAccount } from "#db/accounts.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { findDocumentText } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { saveVersion } from "#db/signing/new-versions.ts";
import { readAccount } from "#domain/account.ts";
import type { AuditActor } from "#domain/audit.ts";
import { readBranding, readLogo } from "#domain/branding.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import type { JsonObject } from "#domain/json.ts";
import { testAccountDocument, testBlueprintDocument, testStrategyDocument } from "#domain/test-documents.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";

/** A document of an account, as it was applied. */
interface LiveDocument {
  readonly kind: "account" | "strategy" | "blueprint";
  readonly id: string;
  readonly document: JsonObject;
}

/** Whose documents they are, and who changed them. */
interface Owner {
  readonly accountId: string;
  readonly actor: AuditActor;
}

/** After a document was applied: the one that is derived from it for the account's test account, if there is one. */
export async function followInTest(
  tx: Database,
  signing: Signing,
  { accountId, actor }: Owner,
  { kind, id, document }: LiveDocument,
): Promise<void> {
  const test = await findTestAccount(tx, accountId);
  if (!test) return;
  if (kind === "account") await saveTestAccount(tx, signing, { accountId, actor }, document);
  else await saveTestDocument(tx, signing, { accountId: test.id, actor }, { kind, id, document });
}

/** Creates the test account of an account, or renews its document if it differs. Returns its id. */
export async function saveTestAccount(
  tx: Database,
  signing: Signing,
  { accountId, actor }: Owner,
  live: JsonObject,
): Promise<string> {
  const tree = testAccountDocument(live);
  const settings = readAccount(tree);
  const document = JSON.stringify(tree);
  const known = await findTestAccount(tx, accountId);
  if (known && (await findAccountDocument(tx, known.id)) === document) return known.id;
  const id = await saveAccount(tx, {
    ...settings,
    branding: readBranding(tree),
    logo: readLogo(tree),
    id: newId(ID_PREFIX.account),
    document,
    testOf: accountId,
  });
  const detail = { kind: "account", version: null };
  await recordApplied(tx, signing, { accountId: id, actor }, { id: settings.slug, document, detail });
  return id;
}

/** A new version of a document of a test account, unless the one in force is the same. */
export async function saveTestDocument(
  tx: Database,
  signing: Signing,
  { accountId, actor }: Owner,
  { kind, id, document: live }: LiveDocument & { readonly kind: "strategy" | "blueprint" },
): Promise<void> {
  const tree = kind === "strategy" ? testStrategyDocument(live) : testBlueprintDocument(live);
  const document = JSON.stringify(tree);
  if ((await findDocumentText(tx, kind, accountId, id)) === document) return;
  const saved = await saveVersion(tx, {
    kind,
    accountId,
    name: id,
    newId: kind === "strategy" ? id : newId(ID_PREFIX.blueprint),
    document,
    retired: tree["retired"] === true,
    operatorId: null,
  });
  const detail = { kind, version: saved.version, ...saved.audited };
  await recordApplied(tx, signing, { accountId, actor }, { id, document, detail });
}

async function recordApplied(
  tx: Database,
  signing: Signing,
  { accountId, actor }: Owner,
  applied: {
    readonly id: string;
    readonly document: string;
    readonly detail: Parameters<typeof recordAudit>[2]["detail"];
  },
): Promise<void> {
  const sha256 = createHash("sha256").update(applied.document).digest("hex");
  await recordAudit(tx, signing.audit, {
    accountId,
    actor,
    action: "config.apply",
    subjectId: applied.id,
    detail: { ...applied.detail, derived: true, sha256 },
  });
}
