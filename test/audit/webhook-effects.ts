import assert from "node:assert/strict";
import type { OperatorStage, Someone } from "../operator/stage.ts";

const ENDPOINT = { account: "acme", url: "https://127.0.0.1:1/" };

/** The operations of webhooks, with their entries and what they are asked about. */
export function webhookEffects<Asked>(
  asAdmin: (params?: Readonly<Record<string, string>>, body?: object) => Promise<Asked>,
  by: () => { readonly stage: OperatorStage; readonly admin: Someone },
) {
  const post = async (path: string, body?: object) =>
    await (await by().stage.holding(by().admin)).send("POST", path, body);
  const newWebhook = async (): Promise<string> => (await post("/webhooks", ENDPOINT)).body.id;
  /** An endpoint with a delivery that was given up. */
  const newFailedDelivery = async (): Promise<{ readonly webhookId: string; readonly eventId: string }> => {
    const webhookId = await newWebhook();
    const [event] = await by().stage.db.query<{ id: string }>(
      `insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
       select new_event_id(), account_id, 'ping', id, app_now(), '{}' from webhook_endpoint where id = $1 returning id`,
      [webhookId],
    );
    const eventId = event?.id ?? assert.fail();
    await by().stage.db.query(
      `insert into webhook_delivery (endpoint_id, event_id, failed_at) values ($1, $2, app_now())`,
      [webhookId, eventId],
    );
    return { webhookId, eventId };
  };
  const onWebhook = (action: string, body?: object) => ({
    actions: [action],
    ask: async () => await asAdmin({ webhookId: await newWebhook() }, body),
  });
  return {
    createWebhook: { actions: ["webhook.create"], ask: async () => await asAdmin({}, ENDPOINT) },
    updateWebhook: onWebhook("webhook.update", { events: ["run.*"] }),
    rotateWebhook: onWebhook("webhook.rotate", { overlap_seconds: 60 }),
    disableWebhook: onWebhook("webhook.disable"),
    enableWebhook: {
      actions: ["webhook.enable"],
      ask: async () => {
        const webhookId = await newWebhook();
        await post(`/webhooks/${webhookId}/disable`);
        return await asAdmin({ webhookId });
      },
    },
    deleteWebhook: onWebhook("webhook.delete"),
    resendWebhook: {
      actions: ["webhook.resend"],
      ask: async () => await asAdmin(await newFailedDelivery()),
    },
    resendFailedWebhooks: {
      actions: ["webhook.resend"],
      ask: async () => {
        const { webhookId } = await newFailedDelivery();
        return await asAdmin({ webhookId }, { since: "2026-01-01" });
      },
    },
    pingWebhook: onWebhook("webhook.ping"),
    triggerWebhookEvent: {
      actions: ["webhook.trigger"],
      ask: async () => {
        await newWebhook();
        return await asAdmin({}, { account: "acme", type: "run.completed" });
      },
    },
  };
}
