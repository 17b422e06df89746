import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { answerKeys } from "#answers/expectation.ts";
import { extractKeys } from "#answers/extract.ts";
import { submitSchema } from "#answers/submit.ts";
import { shorten } from "#domain/config-problem.ts";
import { EXPRESSION, TEMPLATE, type ExpressionScopeKind } from "#domain/expression.ts";
import { HTTP_METHODS, isReadMethod, LOOK_UP_METHODS } from "#domain/http-methods.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { AddedVariables } from "#nodes/define-node.ts";
import { pageVariables } from "./page-variables.ts";
import { parseSchema } from "#nodes/parse/parse-config.ts";
import { paginateSchema, type Paginate } from "./paginate-config.ts";
import { listPath } from "#nodes/parse/parse-records.ts";

const template = (description: string) =>
  Type.Optional(Type.Unsafe<Json>({ [TEMPLATE]: "request", description }));
const pairs = (description: string) =>
  Type.Optional(Type.Record(Type.String(), Type.Unsafe<Json>({}), { [TEMPLATE]: "request", description }));

const requestSchema = Type.Object(
  {
    method: Type.Optional(
      Type.Enum([...HTTP_METHODS], { default: "GET", description: "The method of HTTP or WebDAV." }),
    ),
    url: Type.String({
      minLength: 1,
      maxLength: 8_192,
      [TEMPLATE]: "request",
      description:
        "Relative to the first of the strategy's hosts, or absolute within the hosts. Values inside a longer url are percent-encoded; the host must not contain any.",
    }),
    query: pairs("Query parameters. A list repeats its name; a parameter without a value is left out."),
    headers: pairs("Headers in addition to those of the login."),
    json: template("A JSON body."),
    form: pairs("A URL-encoded form as the body."),
    text: Type.Optional(Type.String({ [TEMPLATE]: "request", description: "A text body." })),
    multipart: pairs(
      "A multipart/form-data body: for each name a string, `{ file: <node>, filename, type }` for a file that a node outputs, or a list of these. A part without a value is left out.",
    ),
    file: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "A node whose output, a file, is the body. With the node of `for_each`, the file in the record.",
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "The request. All values are templates; a key whose template has no value is left out.",
  },
);

/** A look-up sends no files. */
const { method: _method, multipart: _multipart, file: _file, ...lookUpProperties } = requestSchema.properties;

const verifyRequestSchema = Type.Object(
  {
    method: Type.Optional(
      Type.Enum([...LOOK_UP_METHODS], { default: "GET", description: "The method of HTTP or WebDAV." }),
    ),
    ...lookUpProperties,
  },
  { additionalProperties: false, description: "The request that looks up the write." },
);

const answerShape = answerKeys("response");

const expectSchema = Type.Object(
  {
    ...answerShape,
    status: Type.Optional(
      Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
        minItems: 1,
        description: "Default: 200 to 299.",
      }),
    ),
    min_records: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "The least number of records of a read, over all its pages or requests. 0: none is fine, whatever the answer looks like.",
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "Conditions for the answer. If one is not met, the node fails.",
  },
);

const { not_text: _notText, ...refusalKeys } = answerShape;
const refusalSchema = Type.Object(refusalKeys, {
  additionalProperties: false,
  minProperties: 1,
  description: "An answer that meets all of these conditions is a refusal: nothing was written.",
});

const untilSchema = Type.Object(
  {
    when: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description: "An expression over the JSON body: true when the answer is the last one.",
      }),
    ),
    status: answerShape.status,
    text: answerShape.text,
    css: answerShape.css,
    every: Type.String({
      description:
        "A duration of at least 1s: the time between an answer and the next request. At least 5s once the run has been handed back.",
    }),
    for: Type.String({
      description:
        "A duration of at most 7d: the time limit, from the first answer that doesn't meet the conditions. After that the node fails.",
    }),
  },
  {
    additionalProperties: false,
    description:
      "For a read: repeats the request until the answer meets all of these conditions. After 30 seconds, the run occupies no worker and no slot of the account between two requests.",
  },
);

export const httpSchema = Type.Object(
  {
    request: requestSchema,
    submit: Type.Optional(
      submitSchema(
        "request",
        "Submits a form of the page that `request` gets, with its hidden inputs. A write, unless `effect` is `read`.",
      ),
    ),
    follow: Type.Optional(
      Type.Boolean({
        default: true,
        description: "Whether redirects are followed. If false, a redirect is the answer.",
      }),
    ),
    paginate: Type.Optional(paginateSchema),
    expect: Type.Optional(expectSchema),
    until: Type.Optional(untilSchema),
    records: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description: "An expression over the JSON body: a list of objects, or an object for a single record.",
      }),
    ),
    parse: Type.Optional(parseSchema),
    extract: Type.Optional(
      Type.Record(
        Type.String({ minLength: 1 }),
        Type.Object(extractKeys("response"), { additionalProperties: false }),
        {
          minProperties: 1,
          description:
            "Outputs a record with these fields, each with the place of its value in the answer. With `for_each`, adds `status` and these fields to the request's record.",
        },
      ),
    ),
    effect: Type.Optional(
      Type.Enum(["read", "write"], {
        description:
          "Default: `read` for GET, HEAD, PROPFIND and REPORT without `submit`, otherwise `write`.",
      }),
    ),
    max_bytes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.streamedBytesMax,
        default: limits.responseBytesMax,
        description:
          "The largest decompressed response, in bytes. More than 100 MB is only possible for streamed responses: `save: file`, ndjson, csv, and JSON whose list is at the top level or at a path of names.",
      }),
    ),
    for_each: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "A node that outputs records: sends a request, or its pages, for each of them. The record is the root of the request's templates, and `$record` in expressions over the answer. Outputs the records of every answer, or the record itself with `status` and, with `save: file`, `file`.",
      }),
    ),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.requestsAtOnceMax,
        default: 1,
        description: "With `for_each`: concurrent requests.",
      }),
    ),
    throttle: Type.Optional(
      Type.Object(
        {
          requests: Type.Integer({ minimum: 1, maximum: 100_000, description: "The number of requests." }),
          per: Type.Unsafe<Json>({ description: "A duration, e.g. 1s, 1m." }),
        },
        {
          additionalProperties: false,
          description: "The maximum rate of requests, evenly spaced, over all runs of the Blueprint.",
        },
      ),
    ),
    verify: Type.Optional(
      Type.Object(
        {
          request: verifyRequestSchema,
          when: Type.Optional(
            Type.String({
              minLength: 1,
              [EXPRESSION]: "verify",
              description: "An expression over the JSON body: true if the write is there.",
            }),
          ),
          text: Type.Optional(
            Type.String({
              minLength: 1,
              [TEMPLATE]: "request",
              description:
                "The write is there if the answer contains this, e.g. `{{ $token }}`. For an HTML page, only the visible text counts.",
            }),
          ),
          css: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 1_000,
              [TEMPLATE]: "request",
              description:
                'The write is there if the HTML page has an element that matches, e.g. `tr[data-ref="{{ number }}"]`. Values are escaped.',
            }),
          ),
          expect: Type.Optional(
            Type.Object(answerKeys("response"), {
              additionalProperties: false,
              minProperties: 1,
              description:
                "Conditions that the answer always meets, with or without the write; otherwise the node fails. Default: status 200 to 206, or 404.",
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            "How to look up a write that may have happened, before it is sent again. A 404 means that it is not there.",
        },
      ),
    ),
    refused: Type.Optional(
      Type.Union([refusalSchema, Type.Array(refusalSchema, { minItems: 1, maxItems: 20 })], {
        description:
          "For a write: how to recognise the target's refusals (one set of conditions, or a list). An answer that meets neither `expect` nor this may have executed the write.",
      }),
    ),
    on_unknown: Type.Optional(
      Type.Enum(["review", "fail"], {
        default: "review",
        description:
          "What to do with a write that may have happened and can't be looked up: the operator decides whether it did, or the run fails.",
      }),
    ),
    save: Type.Optional(
      Type.Literal("file", {
        description:
          "Outputs the response as a file, whatever its bytes are; with `for_each`, as the field `file` of each record.",
      }),
    ),
  },
  { additionalProperties: false },
);

export type HttpConfig = Static<typeof httpSchema>;
/** The request of a node, or of its `verify`, which has no files. */
export type HttpRequest = HttpConfig["request"];
export type Until = Static<typeof untilSchema>;

/** Called with any config; for an invalid one, the result is a best guess. */
export function effectOf(config: {
  readonly effect?: unknown;
  readonly request?: unknown;
  readonly submit?: unknown;
}): "read" | "write" {
  if (config.effect === "read" || config.effect === "write") return config.effect;
  if (config.submit !== undefined) return "write";
  const { method = "GET" } = (config.request ?? {}) as { readonly method?: unknown };
  return isReadMethod(method) ? "read" : "write";
}

/**
 * Whether responses are streamed to a file: those that may be longer than usual, and are saved as files or parsed as a stream.
 * Conditions on the text (`expect.text`, `until.when`), cursors and expressions need the whole response in memory.
 */
export function isStreamed(config: Partial<HttpConfig>): boolean {
  const { max_bytes: bytesMax = 0, expect, until, paginate, parse } = config;
  const { text, not_text: notText, json, css } = expect ?? {};
  const isLookedAt = [text, notText, json, css, until?.when, until?.text, until?.css].some(
    (key) => key !== undefined,
  );
  if (bytesMax <= limits.responseBytesMax || isLookedAt) return false;
  if (config.for_each !== undefined || isAsked(paginate) || paginate?.next_css !== undefined) return false;
  if (config.save !== undefined || parse?.format === "csv" || parse?.format === "ndjson") return true;
  const isJson = config.records !== undefined || parse?.format === "json";
  return isJson && listPath(config.records ?? parse?.records) !== null;
}

/** The description of a request in messages. */
export function describeRequest({ request: { method = "GET", url }, submit }: HttpConfig): string {
  return submit === undefined ? `${method} ${url}` : `submit ${shorten(submit.form, 100)} of ${url}`;
}

/** Whether an expression over the whole body determines the next page. */
export function isAsked(paginate: Paginate | undefined): boolean {
  return [paginate?.cursor, paginate?.next_url, paginate?.while].some((source) => source !== undefined);
}

/** The variables of expressions in addition to those of their scope. Called with any config. */
export function addedVariables({ paginate, for_each: each }: JsonObject): AddedVariables {
  const variables = pageVariables(paginate);
  const record = each === undefined ? [] : ["record"];
  return {
    request: variables,
    page: [...record, ...variables.filter((name) => name !== "page")],
    response: record,
    verify: record,
  };
}

/** The variables in the templates of a request: with `for_each` those of the record, in writes `$token`. */
export function requestScopeOf(config: JsonObject): ExpressionScopeKind {
  const isWrite = effectOf(config) === "write";
  if (config["for_each"] === undefined) return isWrite ? "write" : "run";
  return isWrite ? "record-write" : "record";
}
