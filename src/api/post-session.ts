import type { FastifyReply, FastifyRequest } from "fastify";
import { replayOrRun, type EffectTogether } from "#actions/replay-or-run.ts";
import type { Caller, Services } from "#actions/services.ts";
import { fingerprint } from "#domain/idempotency.ts";
import { limits } from "#domain/limits.ts";
import type { JsonTree } from "#lib/json-text.ts";
import { enter } from "./enter.ts";
import { sendAnswer } from "./answer.ts";
import { writeCanonical } from "./large-bodies.ts";
import { readJsonObject, senderOf } from "./read-body.ts";
import { readIdempotencyKey } from "./read-idempotency-key.ts";
import { reportIgnoredKeys } from "./report-ignored-keys.ts";

/** A collection of sessions, and how a session is created from a body. */
export interface SessionKind {
  /** The path's last part. */
  readonly collection: string;
  /** The known keys of a body. */
  readonly keys: readonly string[];
  /** Throws Problem 422. Called where the body's effect happens: a replay is not checked again. */
  readonly create: (
    caller: Caller,
    body: ReadonlyMap<string, JsonTree>,
  ) => { readonly alone: Parameters<typeof replayOrRun>[2]; readonly together?: EffectTogether };
}

/** A session of either kind from a JSON body, once for an `Idempotency-Key`. */
export async function postSession(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  { collection, keys, create }: SessionKind,
): Promise<FastifyReply> {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "sessions" });
  const key = readIdempotencyKey(request);
  const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax, sender: senderOf(caller) });
  reportIgnoredKeys(
    request,
    reply,
    [...body.keys()].filter((name) => !keys.includes(name)),
  );
  // Without a key nothing is compared.
  const canonical = key === null ? "" : await writeCanonical(senderOf(caller), body);
  const { alone, together } = create(caller, body);
  const outcome = await replayOrRun(
    services,
    {
      accountId: caller.account.id,
      key,
      fingerprint: () => fingerprint("POST", [collection], { kind: "json", canonical }),
    },
    alone,
    together,
  );
  return sendAnswer(reply, outcome);
}
