import type { FastifyRequest } from "fastify";
import type { Outcome } from "#actions/replay-or-run.ts";
import type { Caller, Services } from "#actions/services.ts";
import { limits } from "#domain/limits.ts";
import type { BodyValue } from "#domain/trigger-routing.ts";
import { canonicalJsonText, writeJsonText, type JsonTree } from "#lib/json-text.ts";
import { mediaType, readUnparsedJson, senderOf, unsupportedType, type ReadBody } from "./read-body.ts";
import { readMultipart } from "./read-multipart.ts";

/**
 * A trigger's body in either encoding; routing is the same for both. `replay` is called with the bytes of a small JSON body, which is not
 * parsed if the result is not null. Throws Problem 415, 413, 422.
 */
export async function readTriggerBody(
  services: Services,
  request: FastifyRequest,
  caller: Caller,
  replay: (bytes: Buffer) => Outcome | null,
): Promise<ReadBody | Outcome> {
  const type = mediaType(request);
  if (type === "multipart/form-data") return await readMultipart(services, request, caller.account.id);
  if (type !== "" && type !== "application/json")
    throw unsupportedType("application/json or multipart/form-data");
  using unparsed = await readUnparsedJson(request, {
    bytesMax: limits.triggerJsonBytesMax,
    sender: senderOf(caller),
  });
  const { bytes } = unparsed;
  const replayed = bytes && replay(bytes);
  if (replayed) return replayed;
  const body = await unparsed.parse();
  return {
    values: new Map([...body].map(([key, value]) => [key, jsonValue(value)])),
    print: () => ({ kind: "json", canonical: canonicalJsonText(body) }),
    bytes,
    discard: async () => {},
  };
}

function jsonValue(value: JsonTree): BodyValue {
  if (typeof value === "string") return { kind: "string", text: value };
  const items =
    Array.isArray(value) && value.every((item) => typeof item === "string") ? (value as string[]) : null;
  return { kind: "json", text: writeJsonText(value), isNull: value === null, items };
}
