import {
  createEmbeddedSession,
  readEmbeddedSession,
  type EmbeddedSessionRequest,
} from "#actions/sessions/create-embedded-session.ts";
import { Problem, type ProblemDetail } from "#domain/problem.ts";
import type { JsonTree } from "#lib/json-text.ts";
import { enter } from "./enter.ts";
import { sendJson } from "./answer.ts";
import { postSession } from "./post-session.ts";
import { readSeconds, type Wrong } from "./read-seconds.ts";
import { pathParameter, type Handler } from "./request.ts";

const KEYS: readonly string[] = ["origin", "blueprint_keys", "name", "locale", "expires_in_seconds"];

/** `POST /embedded-credential-sessions`. docs/decisions/0012. */
export const postEmbeddedSession: Handler = async (services, request, reply) => {
  return await postSession(services, request, reply, {
    collection: "embedded-credential-sessions",
    keys: KEYS,
    create: (caller, body) => ({
      alone: async (tx) => await createEmbeddedSession(services, tx, caller, readRequest(body)),
    }),
  });
};

/** As for credential sessions, an explicit `null` counts as an omitted field. Throws Problem 422. */
function readRequest(body: ReadonlyMap<string, JsonTree>): EmbeddedSessionRequest {
  const details: ProblemDetail[] = [];
  const wrong = (field: string, message: string): null => {
    details.push({ message, code: "invalid_input_data", field });
    return null;
  };
  const text = (field: string): string | null => {
    const value = body.get(field) ?? null;
    return typeof value === "string" || value === null
      ? value
      : wrong(field, `\`${field}\` must be a string.`);
  };
  const parsed = {
    origin: (body.get("origin") ?? null) === null ? wrong("origin", "`origin` is required.") : text("origin"),
    blueprintKeys: readKeys(body.get("blueprint_keys") ?? null, wrong),
    name: text("name"),
    locale: text("locale"),
    expiresInSeconds: readSeconds(body.get("expires_in_seconds") ?? null, wrong),
  };
  if (details.length > 0)
    throw new Problem("validation_error", details[0]?.message ?? "The body is invalid.", { details });
  return { ...parsed, origin: parsed.origin ?? "" };
}

function readKeys(value: JsonTree, wrong: Wrong): readonly string[] | null {
  if (value === null) return null;
  if (!Array.isArray(value)) return wrong("blueprint_keys", "`blueprint_keys` must be a list of strings.");
  const at = value.findIndex((item) => typeof item !== "string");
  if (at === -1) return value as readonly string[];
  return wrong(`blueprint_keys.${at}`, `\`blueprint_keys.${at}\` must be a string.`);
}

/** `GET /embedded-credential-sessions/{id}`. */
export const getEmbeddedSession: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "polls", scope: "sessions" });
  return sendJson(
    reply,
    JSON.stringify(await readEmbeddedSession(services, caller, pathParameter(request, "id"))),
  );
};
