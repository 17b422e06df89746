import assert from "node:assert/strict";
import { isObject, type Answer } from "./caller.ts";

export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const RUN_ID = /^run_\w+$/;
export const CREDENTIAL_ID = /^cred_\w+$/;

type Body = Readonly<Record<string, unknown>>;

/** A field of a body, as the text that it must be. */
function textOf(body: Body, field: string): string {
  const value = body[field];
  assert.equal(typeof value, "string", `${field} is no string in ${JSON.stringify(body)}`);
  return value as string;
}

export const SESSION_FIELDS = [
  "completed_at",
  "created_at",
  "credential_id",
  "expires_at",
  "hosted_url",
  "id",
  "return_url",
  "status",
  "strategy_id",
];

/** A credential session object: its nine fields and no other, as its status wants them. */
export function assertSession(body: Body, status: "pending" | "completed"): void {
  assert.deepEqual(Object.keys(body).toSorted(), SESSION_FIELDS);
  assert.equal(body["status"], status);
  assert.match(textOf(body, "id"), /^sess_\w+$/);
  assert.match(textOf(body, "strategy_id"), /^strat_/);
  assert.match(textOf(body, "created_at"), TIMESTAMP);
  assert.match(textOf(body, "expires_at"), TIMESTAMP);
  assert.ok(body["return_url"] === null || typeof body["return_url"] === "string");
  if (status === "pending") {
    assert.ok(URL.canParse(textOf(body, "hosted_url")), "hosted_url must be a URL while pending");
    assert.equal(body["credential_id"], null);
    assert.equal(body["completed_at"], null);
  } else {
    assert.equal(body["hosted_url"], null);
    assert.match(textOf(body, "credential_id"), CREDENTIAL_ID);
    assert.match(textOf(body, "completed_at"), TIMESTAMP);
  }
}

export const PROJECTION_FIELDS = [
  "blueprint_id",
  "created_at",
  "ended_at",
  "error",
  "id",
  "progress_step",
  "run_key",
  "started_at",
  "status",
];

/** The interface's table of states: which built-in steps belong to a status. */
const STEPS: Readonly<Record<string, readonly string[]>> = {
  queued: ["queued", "authenticating"],
  running: ["running", "awaiting_review"],
  completed: ["completed"],
  failed: ["failed"],
  cancelled: ["cancelled"],
};
const BUILT_IN_STEPS = Object.values(STEPS).flat();

/** A run status projection: its nine fields and no other, a step of its status, times in order. */
export function assertProjection(body: Body): void {
  assert.deepEqual(Object.keys(body).toSorted(), PROJECTION_FIELDS);
  assert.match(textOf(body, "id"), RUN_ID);
  assert.match(textOf(body, "run_key"), UUID);
  assert.match(textOf(body, "blueprint_id"), /^bp_\w+$/);
  const status = textOf(body, "status");
  const step = textOf(body, "progress_step");
  assert.ok(status in STEPS, `status ${status}`);
  if (BUILT_IN_STEPS.includes(step))
    assert.ok(STEPS[status]?.includes(step), `${step} is no step of ${status}`);
  assert.match(textOf(body, "created_at"), TIMESTAMP);
  assert.ok(body["started_at"] === null || TIMESTAMP.test(textOf(body, "started_at")));
  assert.equal(body["ended_at"] !== null, ["completed", "failed", "cancelled"].includes(status));
  if (body["ended_at"] !== null) assert.match(textOf(body, "ended_at"), TIMESTAMP);
  if (status === "failed") {
    assert.ok(isObject(body["error"]));
    assert.deepEqual(Object.keys(body["error"]).toSorted(), ["code", "message"]);
    assert.ok(Object.values(body["error"]).every((value) => typeof value === "string" && value !== ""));
  } else assert.equal(body["error"], null);
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "validation_error",
  401: "authentication_error",
  403: "authorization_error",
  404: "not_found",
  409: "conflict",
  413: "validation_error",
  415: "validation_error",
  422: "validation_error",
  429: "rate_limit_exceeded",
  500: "internal_error",
};

/** The one envelope, with the status's type; `detail` is what one of its details must have. */
export function assertProblem(
  answer: Answer,
  status: number,
  detail: { code?: string; field?: string } = {},
): void {
  assert.equal(answer.status, status, answer.text);
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json\b/);
  const body = answer.object();
  assert.deepEqual(Object.keys(body), ["error"]);
  const { error } = body;
  assert.ok(isObject(error));
  assert.ok(
    Object.keys(error).every((name) => ["type", "message", "details"].includes(name)),
    answer.text,
  );
  assert.equal(error["type"], ERROR_TYPES[status]);
  assert.ok(typeof error["message"] === "string" && error["message"] !== "");
  const details = error["details"] ?? [];
  assert.ok(Array.isArray(details));
  for (const each of details as readonly unknown[]) assertDetail(each);
  if (detail.code === undefined && detail.field === undefined) return;
  const found = (details as readonly Body[]).some(
    (each) =>
      (detail.code === undefined || each["code"] === detail.code) &&
      (detail.field === undefined || each["field"] === detail.field),
  );
  assert.ok(found, `no detail has ${JSON.stringify(detail)} in ${answer.text}`);
}

function assertDetail(detail: unknown): void {
  assert.ok(isObject(detail));
  assert.ok(Object.keys(detail).every((name) => ["message", "code", "field"].includes(name)));
  assert.ok(typeof detail["message"] === "string" && detail["message"] !== "");
  for (const name of ["code", "field"]) {
    const value = detail[name] ?? null;
    assert.ok(value === null || typeof value === "string");
  }
}
