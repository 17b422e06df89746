import type { FastifyReply, FastifyRequest } from "fastify";
import { limitRate, rateHeaders } from "#actions/keys/limit-rate.ts";
import { findStored } from "#actions/replay-or-run.ts";
import { acceptTrigger } from "#actions/runs/accept-trigger.ts";
import { findTriggeredBlueprint } from "#actions/runs/trigger-run.ts";
import type { Caller, Services } from "#actions/services.ts";
import { checkIdempotencyKey, fingerprint } from "#domain/idempotency.ts";
import { toTriggerBody } from "#domain/json-body.ts";
import { limits } from "#domain/limits.ts";
import { invalidField } from "#domain/problem.ts";
import {
  QUEUE_HEADERS,
  readQueueOptions,
  type QueueHeader,
  type QueueOptions,
} from "#domain/queue-options.ts";
import { canonicalJsonText, type JsonTree } from "#lib/json-text.ts";
import { readTraceparent } from "#lib/tracing.ts";
import { sendJson } from "./answer.ts";
import { enter } from "./enter.ts";
import { malformed, readJsonObject, senderOf } from "./read-body.ts";
import { readIdempotencyKey } from "./read-idempotency-key.ts";
import { queueHeadersOf, readQueueHeaders } from "./read-queue-options.ts";
import { describeProblem } from "./render-problem.ts";
import { pathParameter, type Handler } from "./request.ts";

/** One of a batch: what is a header of a single trigger may be a key here, beside its body. */
interface Item {
  readonly key: string | null;
  readonly queue: QueueOptions | null;
  readonly body: ReadonlyMap<string, JsonTree>;
}

/** What a single trigger would have been answered. */
interface ItemAnswer {
  readonly status: number;
  readonly replayed: boolean;
  readonly retryAfterSeconds: number | null;
  /** JSON. */
  readonly body: string;
}

/** What all triggers of a batch share. */
interface Batch {
  readonly services: Services;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly caller: Caller & { readonly traceparent: string | null };
  readonly blueprintKey: string;
  readonly version: Awaited<ReturnType<typeof findTriggeredBlueprint>>;
  /** The request's `Idempotency-Key`. */
  readonly key: string | null;
}

/**
 * docs/api.md#many-triggers-in-one-request: each is executed and answered as if it had been sent by itself, and one that is refused leaves
 * the others alone. Those of a chunk share transactions, as concurrent requests do.
 */
export const postTriggerBatch: Handler = async (services, request, reply) => {
  const entered = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const caller = { ...entered, traceparent: readTraceparent(request.headers["traceparent"]) };
  const blueprintKey = pathParameter(request, "blueprintKey");
  const version = await findTriggeredBlueprint(services, caller, blueprintKey);
  const key = readIdempotencyKey(request);
  // They are wrong for all triggers, or for none.
  readQueueHeaders(request);
  const body = await readJsonObject(request, {
    bytesMax: limits.triggerJsonBytesMax,
    sender: senderOf(caller),
  });
  const triggers = readTriggers(body);
  const batch = { services, request, reply, caller, blueprintKey, version, key };
  const answers: ItemAnswer[] = [];
  while (answers.length < triggers.length) {
    const first = answers.length;
    const chunk = triggers.slice(first, first + limits.triggerBatchChunk);
    answers.push(
      ...(await Promise.all(chunk.map(async (item, index) => await answer(batch, item, first + index)))),
    );
    services.news.notifyRunnable([caller.account.id]);
    // A database that does not answer now would keep the caller waiting again for each chunk.
    const failed = answers.find(({ status }) => status === 503);
    if (failed) answers.push(...triggers.slice(answers.length).map(() => failed));
  }
  return sendJson(reply, `{"answers":[${answers.map(write).join(",")}]}`);
};

async function answer(batch: Batch, item: JsonTree, index: number): Promise<ItemAnswer> {
  const { services, request, reply, caller, blueprintKey, version } = batch;
  try {
    // The first one is the request itself, which was counted when it came.
    const allowance = index === 0 ? null : limitRate(services, caller, "calls");
    if (allowance) reply.headers(rateHeaders(allowance.rate, allowance.policy, allowance.taken));
    const { key, queue, body } = readItem(batch, item, index);
    const stored = key === null ? undefined : await findStored(services, caller.account.id, key);
    const { answer: given, replayed } = await acceptTrigger(services, caller, version, {
      key,
      stored,
      // That of the same trigger sent by itself, or in another batch.
      fingerprint: () =>
        fingerprint("POST", ["blueprints", blueprintKey, "trigger"], {
          kind: "json",
          canonical: canonicalJsonText(body),
        }),
      body: toTriggerBody(body),
      queue,
    });
    return { status: given.status, replayed, retryAfterSeconds: null, body: given.body };
  } catch (error) {
    const { status, headers, body } = describeProblem(services.log, request, error);
    const retryAfter = headers["Retry-After"];
    return {
      status,
      replayed: false,
      retryAfterSeconds: retryAfter === undefined ? null : Number(retryAfter),
      body,
    };
  }
}

const write = ({ status, replayed, retryAfterSeconds, body }: ItemAnswer): string =>
  `{"status":${status},"replayed":${replayed},"retry_after_seconds":${retryAfterSeconds},"body":${body}}`;

/** Throws Problem 422. */
function readTriggers(body: ReadonlyMap<string, JsonTree>): readonly JsonTree[] {
  for (const field of body.keys())
    if (field !== "triggers") throw invalidField(field, `A batch has no \`${field}\`. It has triggers.`);
  const triggers = body.get("triggers");
  if (Array.isArray(triggers) && triggers.length > 0 && triggers.length <= limits.triggerBatchMax)
    return triggers as readonly JsonTree[];
  throw invalidField("triggers", `\`triggers\` must be a list of 1 to ${limits.triggerBatchMax} triggers.`);
}

const QUEUE_FIELDS: Readonly<Record<QueueHeader, string>> = {
  "Latchkey-Delay": "delay_seconds",
  "Latchkey-Priority": "priority",
  "Latchkey-Expires-In": "expires_in_seconds",
};
const ITEM_FIELDS: readonly string[] = ["idempotency_key", ...Object.values(QUEUE_FIELDS), "trigger"];

/** The request's headers hold for what the trigger does not say itself. Throws Problem 422. */
function readItem(batch: Batch, item: JsonTree, index: number): Item {
  if (!(item instanceof Map)) throw malformed("Each of `triggers` must be an object.");
  const fields = item as ReadonlyMap<string, JsonTree>;
  for (const field of fields.keys())
    if (!ITEM_FIELDS.includes(field))
      throw invalidField(
        field,
        `A trigger of a batch has no \`${field}\`. It has ${ITEM_FIELDS.join(", ")}.`,
      );
  const body = fields.get("trigger") ?? new Map<string, JsonTree>();
  if (!(body instanceof Map))
    throw invalidField("trigger", "`trigger` must be an object: the trigger's body.");
  const own = readKey(fields.get("idempotency_key") ?? null);
  // By its place: a batch that is sent again is answered as before. No header has such a character.
  const ofBatch = batch.key === null ? null : `${batch.key}\u0000${index}`;
  return { key: own ?? ofBatch, queue: readQueue(batch.request, fields), body };
}

function readKey(key: JsonTree): string | null {
  if (key === null) return null;
  if (typeof key !== "string") throw invalidField("idempotency_key", "`idempotency_key` must be a string.");
  const problem = checkIdempotencyKey([key], "`idempotency_key`");
  if (problem !== null) throw invalidField("idempotency_key", problem);
  return key;
}

function readQueue(request: FastifyRequest, fields: ReadonlyMap<string, JsonTree>): QueueOptions | null {
  // Anything but a number is refused, as its JSON text.
  const own = QUEUE_HEADERS.flatMap((header) => {
    const value = fields.get(QUEUE_FIELDS[header]) ?? null;
    return value === null ? [] : [[header, canonicalJsonText(value)] as const];
  });
  if (own.length === 0) return readQueueHeaders(request);
  const outcome = readQueueOptions({ ...queueHeadersOf(request), ...Object.fromEntries(own) }, QUEUE_FIELDS);
  if ("refused" in outcome) throw invalidField(outcome.refused.name, outcome.refused.problem);
  return outcome.options;
}
