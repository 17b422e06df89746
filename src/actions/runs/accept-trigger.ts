import { isPassingFailure } from "#actions/passing-failure.ts";
import { replayOrRun, type IdempotentRequest, type Outcome } from "#actions/replay-or-run.ts";
import type { Caller, Services } from "#actions/services.ts";
import type { BlueprintVersion } from "#db/config-documents.ts";
import type { QueueOptions } from "#domain/queue-options.ts";
import type { TriggerBody } from "#domain/trigger-routing.ts";
import { triggerRun, triggerRunTogether } from "./trigger-run.ts";

/** A trigger whose body has been read. */
export interface ReadTrigger extends Omit<IdempotentRequest, "accountId"> {
  readonly body: TriggerBody;
  readonly queue: QueueOptions | null;
}

/**
 * Replays the answer of a key that was used before, or queues a run together with those of concurrent triggers. Workers must be told of it
 * afterwards. Throws Problem.
 */
export async function acceptTrigger(
  services: Services,
  initiator: Caller & { readonly traceparent: string | null },
  version: BlueprintVersion,
  { body, queue, ...request }: ReadTrigger,
): Promise<Outcome> {
  const accountId = initiator.account.id;
  const place = services.quotas.open(accountId);
  let isMade = false;
  try {
    const outcome = await replayOrRun(
      services,
      { accountId, ...request },
      async (tx) => await triggerRun(tx, initiator, version, body, place, queue),
      async (claim) => await triggerRunTogether(services, initiator, version, body, { claim, place, queue }),
    );
    isMade = !outcome.replayed;
    return outcome;
  } catch (error) {
    // If the connection broke, the COMMIT may still have succeeded.
    isMade = isPassingFailure(error);
    throw error;
  } finally {
    place.settle(isMade);
  }
}
