import type { FastifyReply, FastifyRequest } from "fastify";
import { findStored, replayIdentical, replayOrRun, type EffectTogether } from "#actions/replay-or-run.ts";
import type { Caller, Services } from "#actions/services.ts";
import { fingerprint, fingerprintOfBytes } from "#domain/idempotency.ts";
import { limits } from "#domain/limits.ts";
import type { JsonTree } from "#lib/json-text.ts";
import { enter } from "./enter.ts";
import { sendAnswer } from "./answer.ts";
import { writeCanonical } from "./large-bodies.ts";
import { readUnparsedJson, senderOf } from "./read-body.ts";
import { readIdempotencyKey } from "./read-idempotency-key.ts";
import { asksForIgnoredKeys, reportIgnoredKeys } from "./report-ignored-keys.ts";

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
  const stored = key === null ? undefined : await findStored(services, caller.account.id, key);
  const limit = { bytesMax: limits.jsonBodyBytesMax, sender: senderOf(caller) };
  using unparsed = await readUnparsedJson(request, limit);
  const { bytes } = unparsed;
  const fingerprintOf =
    bytes && ((beside: Buffer) => fingerprintOfBytes("POST", [collection], bytes, beside));
  const replayed =
    fingerprintOf && !asksForIgnoredKeys(request) && replayIdentical(services, stored, fingerprintOf);
  if (replayed) return sendAnswer(reply, replayed);
  const body = await unparsed.parse();
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
      stored,
      fingerprint: () => fingerprint("POST", [collection], { kind: "json", canonical }),
      fingerprintOfBytes: fingerprintOf,
    },
    alone,
    together,
  );
  return sendAnswer(reply, outcome);
}
