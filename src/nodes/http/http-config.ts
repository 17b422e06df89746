import { Type, type Static } from "typebox";
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
        "Relative to the first of the strategy's hosts, or absolute within the hosts. Values inside a longer url are percent-encoded; the host part takes none.",
    }),
    query: pairs("Query parameters; a list repeats its name, nothing leaves the parameter out."),
    headers: pairs("Headers besides those that the login adds."),
    json: template("A JSON body."),
    form: pairs("A urlencoded form as the body."),
    text: Type.Optional(Type.String({ [TEMPLATE]: "request", description: "A text body." })),
    multipart: pairs(
      "A multipart/form-data body: for each name a text, `{ file: <node>, filename, type }` for what a node gives as a file, or a list of these. What gives nothing is left out.",
    ),
    file: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "A node that gives a file: its bytes as the body. The node of `for_each`: the file in the record.",
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "The request. All of it are templates; a key whose template gives nothing is left out.",
  },
);

const verifyRequestSchema = Type.Object(
  {
    method: Type.Optional(
      Type.Enum([...LOOK_UP_METHODS], { default: "GET", description: "The method of HTTP or WebDAV." }),
    ),
    ...Type.Omit(requestSchema, ["method", "multipart", "file"]).properties,
  },
  { additionalProperties: false, description: "The request that looks it up." },
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
          "Fewest records that a read gives, of all its pages or requests together. 0: none is fine, whatever the answer looks like.",
      }),
    ),
  },
  { additionalProperties: false, description: "What the answer must be, or the node fails." },
);

const { not_text: _notText, ...refusalKeys } = answerShape;
const refusalSchema = Type.Object(refusalKeys, {
  additionalProperties: false,
  minProperties: 1,
  description: "An answer that has all of it is the target's no: nothing was written.",
});

const untilSchema = Type.Object(
  {
    when: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description: "Over the JSON body: true of the last answer.",
      }),
    ),
    status: answerShape.status,
    text: answerShape.text,
    css: answerShape.css,
    every: Type.String({
      description:
        "A duration, at least 1s: the time between an answer and the next request. Of a run that was handed back, at least 5s.",
    }),
    for: Type.String({
      description:
        "A duration, at most 7d: how long it asks, from the first answer that will not do. After that the node fails.",
    }),
  },
  {
    additionalProperties: false,
    description:
      "Of a read: sends the request again until the answer has all that is named here. What lasts longer than 30 seconds holds no worker and no place of the account between two requests.",
  },
);

export const httpSchema = Type.Object(
  {
    request: requestSchema,
    submit: Type.Optional(
      submitSchema(
        "request",
        "Sends a form of the page that `request` asks for, with its hidden inputs. A write, unless `effect: read` says otherwise.",
      ),
    ),
    follow: Type.Optional(
      Type.Boolean({
        default: true,
        description: "Whether redirects are followed; with false the redirect itself is the answer.",
      }),
    ),
    paginate: Type.Optional(paginateSchema),
    expect: Type.Optional(expectSchema),
    until: Type.Optional(untilSchema),
    records: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description: "Over the JSON body: a list of objects, or one object for a single record.",
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
            "A record with these fields, each with where its value is found in the answer. With `for_each` the record of the request, with `status` and these fields.",
        },
      ),
    ),
    effect: Type.Optional(
      Type.Enum(["read", "write"], {
        description: "Default: read for GET, HEAD, PROPFIND and REPORT without `submit`, else write.",
      }),
    ),
    max_bytes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.streamedBytesMax,
        default: limits.responseBytesMax,
        description:
          "Longest response, decompressed, in bytes. Over 100 MB only for what is read as a stream: `save: file`, ndjson, csv, and JSON whose list is at the top or at a path of names.",
      }),
    ),
    for_each: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "A node that gives records: one request for each, or its pages. The record is the root of the request's templates, and `$record` in expressions over the answer. Gives the records of every answer, or the record itself with `status`, and with `save: file` with `file`.",
      }),
    ),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.requestsAtOnceMax,
        default: 1,
        description: "for_each: requests at once.",
      }),
    ),
    throttle: Type.Optional(
      Type.Object(
        {
          requests: Type.Integer({ minimum: 1, maximum: 100_000, description: "How many." }),
          per: Type.Unsafe<Json>({ description: "A duration, e.g. 1s, 1m." }),
        },
        {
          additionalProperties: false,
          description:
            "At most so many requests per time, evenly spaced, of all runs of the Blueprint together.",
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
              description: "Over the JSON body: true when the write is there.",
            }),
          ),
          text: Type.Optional(
            Type.String({
              minLength: 1,
              [TEMPLATE]: "request",
              description:
                "The write is there when the answer contains this, e.g. `{{ $token }}`; of an HTML page: the text that a reader sees.",
            }),
          ),
          css: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 1_000,
              [TEMPLATE]: "request",
              description:
                'The write is there when the HTML page has such an element, e.g. `tr[data-ref="{{ number }}"]`. Values are escaped.',
            }),
          ),
          expect: Type.Optional(
            Type.Object(answerKeys("response"), {
              additionalProperties: false,
              minProperties: 1,
              description:
                "What the answer must be to be believed, with or without the write; otherwise the node fails. Default: 200 to 206, 404.",
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            "How a write that may have happened is looked up, before it is sent again. A 404 means that it is not there.",
        },
      ),
    ),
    refused: Type.Optional(
      Type.Union([refusalSchema, Type.Array(refusalSchema, { minItems: 1, maxItems: 20 })], {
        description:
          "Of a write: what the target's no looks like (or a list of such answers). What fits neither `expect` nor this may have happened.",
      }),
    ),
    on_unknown: Type.Optional(
      Type.Enum(["review", "fail"], {
        default: "review",
        description:
          "A write that may have happened and can't be looked up: the operator says whether it did, or the run fails.",
      }),
    ),
    save: Type.Optional(
      Type.Literal("file", {
        description:
          "Gives the response as a file, whatever its bytes are; with `for_each` as the field `file` of each record.",
      }),
    ),
  },
  { additionalProperties: false },
);

export type HttpConfig = Static<typeof httpSchema>;
/** Of a node, or of its `verify`, which has no files. */
export type HttpRequest = HttpConfig["request"];
export type Until = Static<typeof untilSchema>;

/** Called with any config: of a broken one it says what can be said. */
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
 * Whether responses go to a file while they come: those that may be longer than usual, and are files or read as a stream. What
 * looks at the text (`expect.text`, `until.when`) or at the whole of it (a cursor, an expression) has it in memory.
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

/** Which variables the templates of a request see: the record's with `for_each`, `$token` in writes. */
export function requestScopeOf(config: JsonObject): ExpressionScopeKind {
  const isWrite = effectOf(config) === "write";
  if (config["for_each"] === undefined) return isWrite ? "write" : "run";
  return isWrite ? "record-write" : "record";
}
