import type { listWebhooks } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";

export type Webhook = AnswerOf<typeof listWebhooks>["items"][number];

/** It was disabled because of its answers, not by an operator. */
export const isDead = ({ disabled_reason: reason }: Webhook): boolean =>
  reason === "gone" || reason === "failing";

/** Why a dead endpoint was disabled, as a part of a sentence. */
export const describeDeath = ({ disabled_reason: reason }: Webhook): string =>
  reason === "gone" ? "it answered 410 (gone)" : "every attempt of five days failed";
