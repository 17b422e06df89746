import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  countWebhookEndpoints,
  deleteWebhookEndpoint,
  disableWebhookEndpoint,
  enableWebhookEndpoint,
  findWebhookEndpoint,
  insertWebhookEndpoint,
  insertWebhookSecret,
  noteEndpointDisabled,
  updateWebhookEndpoint,
  type SealedWebhookSecret,
  type StoredEndpoint,
} from "#db/webhooks/webhook-endpoints.ts";
import type { AuditActor, AuditEvent } from "#domain/audit.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import {
  endpointUrlProblem,
  OPERATOR_SUBSCRIPTIONS,
  SUBSCRIPTIONS,
  subscriptionsProblem,
} from "#domain/webhook.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { newWebhookSecret } from "#lib/webhook-signature.ts";
import { webhookSecretBinding } from "#vault/binding.ts";
import type { Vault } from "#vault/vault.ts";
import { OperatorError, requireAccount } from "#actions/operator-error.ts";

/** What changes of endpoints need. Secrets are only sealed here: the vault need not hold private keys. */
export interface EndpointServices {
  readonly db: Database;
  readonly vault: Pick<Vault, "seal">;
  readonly signing: Signing;
}

export interface NewEndpoint {
  /** The account's slug; null: for the operators. */
  readonly account: string | null;
  readonly url: string;
  /** Types, `run.*` or `*`. */
  readonly events: readonly string[];
  readonly description: string;
}

/** What is omitted stays. */
export interface EndpointChange {
  readonly events?: readonly string[] | undefined;
  readonly description?: string | undefined;
  readonly url?: string | undefined;
}

/** Creates an endpoint. Only the result contains its secret: the database stores it sealed. Throws OperatorError. */
export async function createWebhookEndpoint(
  services: EndpointServices,
  endpoint: NewEndpoint,
  actor: AuditActor = { kind: "cli" },
): Promise<{ readonly id: string; readonly secret: string }> {
  const { url, events, description } = endpoint;
  const problem = endpointUrlProblem(url) ?? subscriptionsProblem(events, subscriptionsFor(endpoint.account));
  if (problem !== null) throw new OperatorError(problem);
  requireDescription(description);
  const accountId =
    endpoint.account === null ? null : (await requireAccount(services.db, endpoint.account)).id;
  const id = newId(ID_PREFIX.webhookEndpoint);
  const { secret, sealed } = await makeSecret(services, accountId, id);
  await services.db.transaction(async (tx) => {
    await insertWebhookEndpoint(tx, {
      id,
      accountId,
      url: new URL(url).href,
      description,
      events,
      isFromDocument: false,
    });
    await insertWebhookSecret(tx, { accountId, endpointId: id }, sealed, 0);
    if ((await countWebhookEndpoints(tx, accountId)) > limits.webhookEndpointsMax)
      throw new OperatorError(
        `${endpoint.account === null ? "The operators have" : `Account "${endpoint.account}" has`} ${limits.webhookEndpointsMax} webhook endpoints, the maximum. Delete those that are no longer needed.`,
      );
    const detail = { origin: new URL(url).origin, events: events.join(" ") };
    await audit(services, tx, { id, accountId }, actor, "webhook.create", detail);
  });
  return { id, secret };
}

/**
 * Gives an endpoint another secret. For the time of the overlap deliveries are signed with both. Only the result contains the new
 * secret. Throws OperatorError.
 */
export async function rotateWebhookSecret(
  services: EndpointServices,
  request: { readonly id: string; readonly overlapMs: number },
  actor: AuditActor = { kind: "cli" },
): Promise<{ readonly id: string; readonly secret: string; readonly previousSecretEndsAt: Date | null }> {
  const { id, overlapMs } = request;
  const { accountId } = await requireEndpoint(services.db, id);
  const { secret, sealed } = await makeSecret(services, accountId, id);
  const changed = await services.db.transaction(async (tx) => {
    await insertWebhookSecret(tx, { accountId, endpointId: id }, sealed, overlapMs);
    await audit(services, tx, { id, accountId }, actor, "webhook.rotate", { overlap_ms: overlapMs });
    return await requireEndpoint(tx, id);
  });
  return { id, secret, previousSecretEndsAt: changed.previousSecretEndsAt };
}

async function makeSecret(
  { vault }: Pick<EndpointServices, "vault">,
  accountId: string | null,
  endpointId: string,
): Promise<{ readonly secret: string; readonly sealed: SealedWebhookSecret }> {
  const secret = newWebhookSecret();
  const id = newId(ID_PREFIX.webhookSecret);
  const plain = Buffer.from(secret, "utf8");
  const sealed = await vault.seal(plain, webhookSecretBinding(accountId, id, endpointId));
  plain.fill(0);
  return { secret, sealed: { id, ...sealed } };
}

type ChangeServices = Omit<EndpointServices, "vault">;

const subscriptionsFor = (account: string | null): readonly string[] =>
  account === null ? OPERATOR_SUBSCRIPTIONS : SUBSCRIPTIONS;

function requireDescription(description: string): void {
  if (description.length > limits.webhookDescriptionCharactersMax)
    throw new OperatorError(
      `The description has more than ${limits.webhookDescriptionCharactersMax} characters.`,
    );
}

/**
 * Changes what an endpoint gets from now on, its description, or its URL, to which events that wait are sent as well; what is omitted
 * stays. Throws OperatorError.
 */
export async function updateWebhook(
  services: ChangeServices,
  id: string,
  change: EndpointChange,
  actor: AuditActor = { kind: "cli" },
): Promise<void> {
  const endpoint = await requireEndpoint(services.db, id);
  refuseDocuments(endpoint, "change it there");
  const { events = endpoint.events, description = endpoint.description, url = endpoint.url } = change;
  const problem = endpointUrlProblem(url) ?? subscriptionsProblem(events, subscriptionsFor(endpoint.account));
  if (problem !== null) throw new OperatorError(problem);
  requireDescription(description);
  const { origin, href } = new URL(url);
  await services.db.transaction(async (tx) => {
    await updateWebhookEndpoint(tx, id, { events, description, url: href });
    await audit(services, tx, endpoint, actor, "webhook.update", { origin, events: events.join(" ") });
  });
}

function refuseDocuments({ id, account, isFromDocument }: StoredEndpoint, remedy: string): void {
  if (isFromDocument)
    throw new OperatorError(
      `The webhook endpoint ${id} is in the document of the account ${account ?? ""}: ${remedy}, under \`webhooks\`, and apply the document.`,
    );
}

/** From now on the endpoint gets no events; those that were not delivered wait until it is enabled. Throws OperatorError. */
export async function disableWebhook(
  services: ChangeServices,
  id: string,
  actor: AuditActor = { kind: "cli" },
): Promise<void> {
  const endpoint = await requireEndpoint(services.db, id);
  await services.db.transaction(async (tx) => {
    if (!(await disableWebhookEndpoint(tx, id, "operator")))
      throw new OperatorError(`The webhook endpoint ${id} is already disabled.`);
    await noteEndpointDisabled(tx, endpoint, "operator");
    await audit(services, tx, endpoint, actor, "webhook.disable", { reason: "operator" });
  });
}

/** The endpoint gets events again. Throws OperatorError. */
export async function enableWebhook(
  services: ChangeServices,
  id: string,
  actor: AuditActor = { kind: "cli" },
): Promise<void> {
  const endpoint = await requireEndpoint(services.db, id);
  await services.db.transaction(async (tx) => {
    if (!(await enableWebhookEndpoint(tx, id)))
      throw new OperatorError(`The webhook endpoint ${id} is already enabled.`);
    await audit(services, tx, endpoint, actor, "webhook.enable", {});
  });
}

/** Deletes an endpoint with its secrets and its delivery log. Throws OperatorError. */
export async function deleteWebhook(
  services: ChangeServices,
  id: string,
  actor: AuditActor = { kind: "cli" },
): Promise<void> {
  const endpoint = await requireEndpoint(services.db, id);
  refuseDocuments(endpoint, "remove it there");
  const { origin } = new URL(endpoint.url);
  await services.db.transaction(
    async (tx) => {
      if (!(await deleteWebhookEndpoint(tx, id))) throw unknownEndpoint(id);
      await audit(services, tx, endpoint, actor, "webhook.delete", { origin });
    },
    { retry: true },
  );
}

/** Throws OperatorError. */
export async function requireEndpoint(db: Database, id: string): Promise<StoredEndpoint> {
  const endpoint = await findWebhookEndpoint(db, id);
  if (endpoint === undefined) throw unknownEndpoint(id);
  return endpoint;
}

const unknownEndpoint = (id: string): OperatorError =>
  new OperatorError(
    `There is no webhook endpoint ${JSON.stringify(id)}. \`latchkey webhooks list\` shows the ids.`,
    "missing",
  );

async function audit(
  { signing }: Pick<EndpointServices, "signing">,
  tx: Database,
  { id, accountId }: Pick<StoredEndpoint, "id" | "accountId">,
  actor: AuditActor,
  action: AuditEvent["action"],
  detail: NonNullable<AuditEvent["detail"]>,
): Promise<void> {
  await recordAudit(tx, signing.audit, { accountId, actor, action, subjectId: id, detail });
}
