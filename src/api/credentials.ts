import {
  deleteCredential,
  deleteCredentialTogether,
  withdrawTombstone,
} from "#actions/credentials/delete-credential.ts";
import { replayOrRun } from "#actions/replay-or-run.ts";
import { fingerprint } from "#domain/idempotency.ts";
import { enter } from "./enter.ts";
import { sendAnswer } from "./answer.ts";
import { readIdempotencyKey } from "./read-idempotency-key.ts";
import { pathParameter, type Handler } from "./request.ts";

/** Spec, DELETE /credentials/{credentialId}. It has no body; one that is sent is ignored. */
export const deleteCredentialById: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "credentials:delete" });
  const key = readIdempotencyKey(request);
  const id = pathParameter(request, "credentialId");
  const tombstone = services.tombstones.of(id);
  const deletion = {
    accountId: caller.account.id,
    actor: { kind: "api_key", id: caller.keyId },
    id,
    tombstone,
  } as const;
  let failedRunIds: readonly string[] = [];
  const outcome = await replayOrRun(
    services,
    {
      accountId: caller.account.id,
      key,
      fingerprint: () => fingerprint("DELETE", ["credentials", id], { kind: "none" }),
    },
    async (tx) => {
      const deleted = await deleteCredential(services, tx, deletion);
      failedRunIds = deleted.failedRunIds;
      return deleted.answer;
    },
    async (claim) => {
      const deleted = await deleteCredentialTogether(services, deletion, claim);
      failedRunIds = deleted?.failedRunIds ?? [];
      return deleted?.answer ?? null;
    },
  ).catch(async (error: unknown) => {
    await withdrawTombstone(services, tombstone, error);
    throw error;
  });
  services.news.announce(failedRunIds);
  return sendAnswer(reply, outcome);
};
