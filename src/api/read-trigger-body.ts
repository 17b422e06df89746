import type { FastifyRequest } from "fastify";
import type { Outcome } from "#actions/replay-or-run.ts";
import type { Caller, Services } from "#actions/services.ts";
import { limits } from "#domain/limits.ts";
import { toTriggerBody } from "#domain/json-body.ts";
import { canonicalJsonText } from "#lib/json-text.ts";
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
    values: toTriggerBody(body),
    print: () => ({ kind: "json", canonical: canonicalJsonText(body) }),
    bytes,
    discard: async () => {},
  };
}
