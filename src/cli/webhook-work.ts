import type { Database } from "#db/connection/pool.ts";
import type { Composition } from "./composition.ts";
import { openOwnSigning } from "./own-signing.ts";
import { CommandFailed, tell } from "./output.ts";
import { onRemote } from "./remote.ts";
import type { WebhookWork } from "./webhook-commands.ts";

/** Does the work on the service that LATCHKEY_URL or `--url` names, or else on this machine's database. */
export async function onWebhooks<T>(
  composition: Composition,
  work: (webhooks: WebhookWork) => Promise<T>,
): Promise<T> {
  if (!composition.isRemote())
    return await composition.withDatabase(async (db) => await work(webhooksHere(composition, db)));
  const { webhooksThere } = await import("./remote-webhooks.ts");
  return await onRemote(composition, async (service) => await work(webhooksThere(service)));
}

function webhooksHere(composition: Composition, db: Database): WebhookWork {
  const endpoints = async () => await import("#actions/webhooks/manage-endpoints.ts");
  const sending = async () => await import("#actions/webhooks/resend.ts");
  const log = async () => await import("#db/webhooks/webhook-deliveries.ts");
  const services = () => ({ db, signing: openOwnSigning(composition) });
  const withVault = async () => ({ ...services(), vault: await composition.openSealer(db) });
  return {
    create: async (endpoint) => await (await endpoints()).createWebhookEndpoint(await withVault(), endpoint),
    list: async (account) => {
      const { accountIdsOf } = await import("#actions/operator-error.ts");
      const { listWebhookEndpoints } = await import("#db/webhooks/webhook-endpoints.ts");
      return await listWebhookEndpoints(
        db,
        account === undefined ? null : await accountIdsOf(db, account, null),
      );
    },
    read: async (id) => {
      const { accountId: _accountId, ...endpoint } = await (await endpoints()).requireEndpoint(db, id);
      return endpoint;
    },
    deliveries: async (id, page) => {
      await (await endpoints()).requireEndpoint(db, id);
      return await (await log()).listDeliveries(db, id, { ...page, afterEventId: null });
    },
    delivery: async (id, eventId) => {
      const found = await (await log()).findDelivery(db, id, eventId);
      if (found === undefined)
        throw new CommandFailed(
          `The webhook endpoint ${id} has no delivery of the event ${eventId}. \`latchkey webhooks deliveries\` shows the events.`,
        );
      const { renderOrReport } = await import("#actions/webhooks/render-or-report.ts");
      const { publicUrl, host, port } = composition.config();
      const body = renderOrReport(found.event, publicUrl ?? `http://${host}:${port}`, (error) =>
        tell(`The event can't be rendered: ${error instanceof Error ? error.message : String(error)}`),
      );
      return { eventId: found.event.id, body, attempts: found.attempts };
    },
    update: async (id, change) => await (await endpoints()).updateWebhook(services(), id, change),
    rotate: async (id, overlapMs) =>
      await (await endpoints()).rotateWebhookSecret(await withVault(), { id, overlapMs }),
    change: async (id, how) => {
      const { deleteWebhook, disableWebhook, enableWebhook } = await endpoints();
      await { disable: disableWebhook, enable: enableWebhook, delete: deleteWebhook }[how](services(), id);
    },
    resend: async (id, what) => await (await sending()).resendWebhooks(services(), id, what),
    ping: async (id) => await (await sending()).pingWebhook(services(), id),
    trigger: async (account, type) => {
      const { triggerEvent } = await import("#actions/webhooks/trigger-event.ts");
      return await triggerEvent(services(), { account, type });
    },
  };
}
