import { recordAudit } from "#db/audit-entries.ts";
import { listBlueprints, type BlueprintVersion } from "#db/config-documents.ts";
import { findEmbeddedSession, insertEmbeddedSession } from "#db/credentials/embedded-sessions.ts";
import type { Database } from "#db/connection/pool.ts";
import { projectEmbeddedSession } from "#domain/embedded-session.ts";
import { ID_PREFIX, isId } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { isWellFormedName } from "#domain/names.ts";
import { invalidField, notFound } from "#domain/problem.ts";
import { canonicalOrigin } from "#domain/return-url.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { newId } from "#lib/new-id.ts";
import type { Answer } from "#actions/replay-or-run.ts";
import { chooseBlueprint } from "./select-blueprint.ts";
import type { Caller, Needs } from "#actions/services.ts";

export interface EmbeddedSessionRequest {
  readonly origin: string;
  /** null: every Blueprint of the account that needs a credential. */
  readonly blueprintKeys: readonly string[] | null;
  readonly name: string | null;
  readonly locale: string | null;
  readonly expiresInSeconds: number | null;
}

/** `POST /embedded-credential-sessions`, inside the caller's transaction. Throws Problem 422 naming the field. */
export async function createEmbeddedSession(
  services: Needs<"publicUrl" | "signing">,
  tx: Database,
  caller: Caller,
  request: EmbeddedSessionRequest,
): Promise<Answer> {
  if (request.name !== null && !isWellFormedName(request.name)) {
    throw invalidField("name", "`name` must have at most 255 characters and no U+0000.");
  }
  const { account } = caller;
  const origin = checkOrigin(request.origin, account.embedOrigins);
  const locale = checkLocale(request.locale);
  const lifetimeMs = checkLifetime(request.expiresInSeconds);
  const blueprints = await findOffered(tx, account.id, request.blueprintKeys);
  const id = newId(ID_PREFIX.embeddedCredentialSession);
  const blueprintKeys = blueprints.map(({ blueprint }) => blueprint.key);
  const { name } = request;
  await insertEmbeddedSession(tx, {
    id,
    accountId: account.id,
    origin,
    blueprintKeys,
    name,
    locale,
    lifetimeMs,
  });
  // With a single Blueprint there is no choice: its forms are created at once.
  const [only, ...others] = blueprints;
  if (only && others.length === 0) await chooseBlueprint(services, tx, { accountId: account.id, id }, only);
  await recordAudit(tx, services.signing.audit, {
    accountId: account.id,
    actor: { kind: "api_key", id: caller.keyId },
    action: "embedded_session.create",
    subjectId: id,
    detail: { origin, blueprints: blueprintKeys.length },
  });
  await failpoint("session.after_insert");
  const session = must(await findEmbeddedSession(tx, account.id, id), "the session that was made");
  const projection = projectEmbeddedSession(
    session,
    embedUrl(services, id),
    services.signing.clientToken(id),
  );
  return { status: 201, body: JSON.stringify(projection), tokenOfSession: id };
}

/** `GET /embedded-credential-sessions/{id}`. Throws Problem 404. */
export async function readEmbeddedSession(services: Needs<"db" | "publicUrl">, caller: Caller, id: string) {
  const session = isId("embeddedCredentialSession", id)
    ? await findEmbeddedSession(services.db, caller.account.id, id)
    : undefined;
  if (!session) throw notFound("Embedded credential session");
  return projectEmbeddedSession(session, embedUrl(services, id));
}

/** Contains no secret: the session is opened with its client token. */
const embedUrl = (services: Needs<"publicUrl">, id: string): string =>
  `${services.publicUrl()}/embed/v1/${id}`;

/** docs/decisions/0019: exactly one origin, and one of the account's. */
function checkOrigin(text: string, embedOrigins: readonly string[]): string {
  const origin = text.length <= limits.originCharactersMax ? canonicalOrigin(text) : undefined;
  if (origin === undefined) {
    throw invalidField(
      "origin",
      "`origin` must be the scheme, host and port of the page that shows the frame, like `https://app.example.com`.",
    );
  }
  if (!embedOrigins.includes(origin)) {
    throw invalidField("origin", "`origin` is not one of this account's origins for embedding.");
  }
  return origin;
}

const LANGUAGE_TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/;

/** BCP 47. An unsupported language is not an error: callers' users may have any language. */
function checkLocale(text: string | null): string | null {
  if (text !== null && (text.length > limits.localeCharactersMax || !LANGUAGE_TAG.test(text))) {
    throw invalidField("locale", "`locale` must be a language tag like `de` or `pt-BR`.");
  }
  return text;
}

function checkLifetime(seconds: number | null): number {
  if (seconds === null) return limits.embeddedLifetimeMs;
  const [least, most] = [limits.embeddedLifetimeMsMin / 1_000, limits.embeddedLifetimeMsMax / 1_000];
  if (!Number.isInteger(seconds) || seconds < least || seconds > most) {
    throw invalidField("expires_in_seconds", `\`expires_in_seconds\` must be from ${least} to ${most}.`);
  }
  return seconds * 1_000;
}

/** In the caller's order. Only Blueprints that use credentials, and always new ones. */
async function findOffered(
  tx: Database,
  accountId: string,
  keys: readonly string[] | null,
): Promise<readonly BlueprintVersion[]> {
  const max = limits.embeddedBlueprintsMax;
  const isOffered = ({ blueprint, retired }: BlueprintVersion): boolean =>
    !retired && blueprint.credentials.length > 0;
  if (keys === null) {
    const all = (await listBlueprints(tx, accountId, null)).filter(isOffered);
    if (all.length > 0 && all.length <= max) return all;
    const why = all.length === 0 ? "has none that takes a credential" : `has more than ${max}`;
    throw invalidField("blueprint_keys", `\`blueprint_keys\` must name Blueprints: this account ${why}.`);
  }
  const wanted = [...new Set(keys)];
  if (wanted.length === 0 || wanted.length > max) {
    throw invalidField("blueprint_keys", `\`blueprint_keys\` must name from 1 to ${max} Blueprints.`);
  }
  const found = new Map(
    (await listBlueprints(tx, accountId, wanted)).map((version) => [version.blueprint.key, version]),
  );
  return wanted.map((key) => {
    const version = found.get(key);
    const field = `blueprint_keys.${keys.indexOf(key)}`;
    if (!version || version.retired)
      throw invalidField(field, `\`${field}\` is not a Blueprint of this account.`);
    if (!isOffered(version)) throw invalidField(field, `The Blueprint of \`${field}\` takes no credential.`);
    return version;
  });
}
