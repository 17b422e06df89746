import { renderEvent, type WebhookEvent } from "#domain/webhook.ts";

/**
 * The body of an event; null if its row can't be rendered, as one of another release may be: `report` gets the error, and what else is known
 * of the delivery can still be shown.
 */
export function renderOrReport(
  event: WebhookEvent,
  publicUrl: string,
  report: (error: unknown) => void,
): string | null {
  try {
    return renderEvent(event, publicUrl);
  } catch (error) {
    report(error);
    return null;
  }
}
