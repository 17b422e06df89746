import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { openApiDocument } from "../../scripts/generate/openapi-document.ts";
import type { HeaderObject, ResponseObject, SchemaObject } from "../../scripts/generate/openapi-types.ts";
import { DETAIL_CODES } from "#contract/error.ts";
import { MILESTONE_PATTERN, RUN_STATUSES } from "#domain/run.ts";
import { SESSION_STATUSES } from "#domain/credential-session.ts";
import { must } from "#lib/assert.ts";

/** A response, read to its end. `ApiAnswer` of `test/caller.ts` is one. */
export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Spec, Errors: the type that belongs to a status. */
const TYPE_OF_STATUS: Readonly<Record<number, string>> = {
  400: "validation_error",
  401: "authentication_error",
  403: "authorization_error",
  404: "not_found",
  408: "validation_error",
  409: "conflict",
  413: "validation_error",
  415: "validation_error",
  422: "validation_error",
  429: "rate_limit_exceeded",
  431: "validation_error",
  500: "internal_error",
  503: "internal_error",
};

/** Open sets for callers; what this version may put into them. */
const KNOWN_VALUES: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  "CredentialSession.status": SESSION_STATUSES,
  "RunStatus.status": RUN_STATUSES,
  // Built-in steps and milestones have the same shape.
  "RunStatus.progress_step": [new RegExp(MILESTONE_PATTERN)],
  "RunAccepted.status": ["queued"],
  "RunError.code": ["execution_failed"],
  "ErrorDetail.code": Object.keys(DETAIL_CODES),
};

/** What may be missing in a response of ours although it has a schema. */
const OPTIONAL = new Set([
  "ErrorObject.details",
  "CredentialSession.metadata",
  "CredentialSession.cancel_url",
  "Readiness.disk_full",
]);

const contract = openApiDocument();
const validators = new Map<string, ValidateFunction>();
const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, strictTypes: false });
addFormats.default(ajv);
// OpenAPI's own word; `oneOf` with a constant in each alternative decides the same.
ajv.addVocabulary(["discriminator", "components"]);
ajv.addSchema({ $id: "contract", components: closed(contract.components) as object });

/** A copy in which no object may have another key than those that are described, and none of them may be missing. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, key === "examples" ? item : closed(item)]),
  );
  const { title, properties } = copy as { title?: unknown; properties?: Record<string, SchemaObject> };
  if (typeof properties !== "object" || "additionalProperties" in copy) return copy;
  for (const [name, property] of Object.entries(properties)) {
    const known = KNOWN_VALUES[`${String(title)}.${name}`];
    if (known) properties[name] = { ...property, pattern: patternOf(known) };
  }
  const required = Object.keys(properties).filter((name) => !OPTIONAL.has(`${String(title)}.${name}`));
  return { ...copy, additionalProperties: false, required };
}

function patternOf(values: readonly (string | RegExp)[]): string {
  return values.map((value) => (typeof value === "string" ? `^${value}$` : value.source)).join("|");
}

/** A check of one value, as the contract's components are closed. */
function validatorOf(schema: SchemaObject): ValidateFunction {
  const text = JSON.stringify(closed(schema)).replaceAll('"#/components/', '"contract#/components/');
  const known = validators.get(text) ?? ajv.compile(JSON.parse(text) as object);
  validators.set(text, known);
  return known;
}

/** Throws unless the value is what the schema of the document describes: no key more, no key less. */
export function expectSchema(what: string, schema: SchemaObject, value: unknown): void {
  const validate = validatorOf(schema);
  if (!validate(value))
    assert.fail(`${what}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value, null, 2)}`);
}

/** The response that the document describes for a status of an operation. */
function describedResponse(operationId: string, status: number): ResponseObject {
  const operations = Object.values(contract.paths).flatMap((item) => [
    item.get,
    item.post,
    item.put,
    item.delete,
  ]);
  const operation = must(
    operations.find((candidate) => candidate?.operationId === operationId),
    `the operation ${operationId}`,
  );
  // What is malformed as HTTP is refused before there is an operation.
  const early = status === 400 || status === 408 ? operation.responses["default"] : undefined;
  const response = operation.responses[String(status)] ?? early;
  assert.ok(response, `${operationId} does not describe the status ${status}`);
  if (!("$ref" in response)) return response;
  return must(
    contract.components.responses[response.$ref.replace("#/components/responses/", "")],
    response.$ref,
  );
}

/**
 * Throws unless the response is one that the contract describes for this operation: status, content type, headers, and the
 * body with no key missing and none too many. Gives the body.
 */
export function expectContract(operationId: string, response: Received): unknown {
  const described = describedResponse(operationId, response.status);
  const what = `${operationId} ${response.status}`;
  expectHeaders(what, described, response);
  const [[contentType, media] = [null, undefined]] = Object.entries(described.content ?? {});
  if (media === undefined) {
    assert.equal(response.text, "", `${what}: the body must be empty`);
    assert.equal(
      response.headers.get("content-type"),
      null,
      `${what}: without a body there is no content type`,
    );
    return undefined;
  }
  assert.equal(response.headers.get("content-type"), `${contentType}; charset=utf-8`, what);
  const body = contentType === "application/json" ? (JSON.parse(response.text) as unknown) : response.text;
  expectSchema(what, media.schema, body);
  const type = TYPE_OF_STATUS[response.status];
  // A health check says 503 in its own words.
  if (type !== undefined && JSON.stringify(media.schema).endsWith('/Error"}')) {
    assert.equal((body as { error: { type: string } }).error.type, type, what);
  }
  return body;
}

function expectHeaders(what: string, described: ResponseObject, { status, headers }: Received): void {
  for (const [name, header] of Object.entries(contract.components.headers)) {
    const value = headers.get(name);
    if (described.headers?.[name] === undefined) {
      assert.equal(value, null, `${what}: the header ${name} is not described`);
    } else if (value !== null) {
      expectSchema(`${what}, header ${name}`, header.schema, value);
    } else {
      assert.ok(!isDue(name, header, status), `${what}: the header ${name} is missing`);
    }
  }
}

/** docs/api.md#failures: a 429 says what is allowed, and both it and a 503 when to come back. */
const isDue = (name: string, header: HeaderObject, status: number): boolean =>
  header.required ||
  (name === "Retry-After" && (status === 429 || status === 503)) ||
  (name.startsWith("RateLimit") && status === 429);
