import {
  createCredentialSession,
  createSessionTogether,
  type SessionRequest,
} from "#actions/sessions/create-credential-session.ts";
import { readCredentialSession } from "#actions/sessions/read-credential-session.ts";
import { Problem, type ProblemDetail } from "#domain/problem.ts";
import { writeSessionMetadata } from "#domain/session-metadata.ts";
import type { JsonTree } from "#lib/json-text.ts";
import { enter } from "./enter.ts";
import { sendJson } from "./answer.ts";
import { postSession } from "./post-session.ts";
import { readSeconds, type Wrong } from "./read-seconds.ts";
import { pathParameter, type Handler } from "./request.ts";

/** Spec, POST /credential-sessions. */
export const postCredentialSession: Handler = async (services, request, reply) => {
  return await postSession(services, request, reply, {
    collection: "credential-sessions",
    keys: SESSION_KEYS,
    create: (caller, body) => ({
      alone: async (tx) => await createCredentialSession(services, tx, caller, readSessionRequest(body)),
      together: async (claim) =>
        await createSessionTogether(services, caller, readSessionRequest(body), claim),
    }),
  });
};

const SESSION_KEYS: readonly string[] = [
  "strategy_id",
  "name",
  "return_url",
  "cancel_url",
  "metadata",
  "expires_in_seconds",
];

/** Unknown keys are ignored; an explicit `null` is an omitted field (docs/api.md#credential-sessions). Throws Problem 422. */
function readSessionRequest(body: ReadonlyMap<string, JsonTree>): SessionRequest {
  const details: ProblemDetail[] = [];
  const wrong: Wrong = (field, message) => {
    details.push({ message, code: "invalid_input_data", field });
    return null;
  };
  const text = (field: string, required: boolean): string | null => {
    const value = body.get(field) ?? null;
    if (typeof value === "string") return value;
    if (value !== null || required) {
      return wrong(field, value === null ? `\`${field}\` is required.` : `\`${field}\` must be a string.`);
    }
    return null;
  };
  const parsed = {
    strategyId: text("strategy_id", true) ?? "",
    name: text("name", false),
    returnUrl: text("return_url", false),
    cancelUrl: text("cancel_url", false),
    metadata: readMetadata(body.get("metadata") ?? null, wrong),
    expiresInSeconds: readSeconds(body.get("expires_in_seconds") ?? null, wrong),
  };
  if (details.length > 0)
    throw new Problem("validation_error", details[0]?.message ?? "The body is invalid.", { details });
  return parsed;
}

function readMetadata(value: JsonTree, wrong: Wrong): string | null {
  if (value === null) return null;
  if (!(value instanceof Map)) return wrong("metadata", "`metadata` must be an object of strings.");
  const written = writeSessionMetadata(value);
  return "text" in written ? written.text : wrong(written.field, written.problem);
}

/** Spec, GET /credential-sessions/{id}. */
export const getCredentialSession: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "polls", scope: "sessions" });
  return sendJson(
    reply,
    JSON.stringify(await readCredentialSession(services, caller, pathParameter(request, "id"))),
  );
};
