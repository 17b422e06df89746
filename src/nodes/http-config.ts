import { Type, type Static } from "typebox";
import { parseDuration } from "#domain/duration.ts";
import { EXPRESSION, TEMPLATE, type ExpressionScopeKind } from "#domain/expression.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { CheckedCommon, ConfigFinding } from "./define-node.ts";
import { parseFindings, parseSchema } from "./parse-records.ts";
import { readConfig } from "#domain/read-config.ts";
import { urlTemplateProblem } from "#domain/url-template.ts";

const unbuilt = (what: string) => Type.Optional(Type.Unsafe<Json>({ description: `${what} Not built yet.` }));
const template = (description: string) =>
  Type.Optional(Type.Unsafe<Json>({ [TEMPLATE]: "request", description }));
const pairs = (description: string) =>
  Type.Optional(Type.Record(Type.String(), Type.Unsafe<Json>({}), { [TEMPLATE]: "request", description }));

const requestSchema = Type.Object(
  {
    method: Type.Optional(Type.Enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], { default: "GET" })),
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
    multipart: unbuilt("A multipart body."),
  },
  { additionalProperties: false },
);

const verifyRequestSchema = Type.Object(
  {
    method: Type.Optional(Type.Enum(["GET", "HEAD", "POST"], { default: "GET" })),
    ...Type.Omit(requestSchema, ["method", "multipart"]).properties,
  },
  { additionalProperties: false },
);

const paginateSchema = Type.Object(
  {
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description:
          "Over the JSON body; its value is sent as `param` for the next page. Pages end when it gives nothing, null, false or an empty text.",
      }),
    ),
    page: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "The number of the first page, sent as `param`. Pages end with one that gives no records.",
      }),
    ),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "The first offset, sent as `param`; it grows by the records of every page. Pages end with one that gives none, or fewer than `size`.",
      }),
    ),
    link_header: Type.Optional(
      Type.Literal(true, { description: "Follows the Link header's rel=next (RFC 8288), within the hosts." }),
    ),
    param: Type.Optional(
      Type.String({
        minLength: 1,
        description: "The query parameter that carries the cursor, the page or the offset.",
      }),
    ),
    size: Type.Optional(Type.Integer({ minimum: 1, description: "offset: the records of a full page." })),
    size_param: Type.Optional(
      Type.String({
        minLength: 1,
        description: "offset: the query parameter that carries `size`, if it shall be sent.",
      }),
    ),
    max_pages: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.pagesMax,
        default: limits.pagesMax,
        description: "With more to come after this many pages, the node fails.",
      }),
    ),
  },
  { additionalProperties: false },
);

const expectSchema = Type.Object(
  {
    status: Type.Optional(
      Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
        minItems: 1,
        description: "Default: 200 to 299.",
      }),
    ),
    text: Type.Optional(Type.String({ minLength: 1, description: "The body must hold this text." })),
    not_text: Type.Optional(Type.String({ minLength: 1, description: "The body must not hold this text." })),
  },
  { additionalProperties: false },
);

export const httpSchema = Type.Object(
  {
    request: requestSchema,
    paginate: Type.Optional(paginateSchema),
    expect: Type.Optional(expectSchema),
    records: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description: "Over the JSON body: a list of objects, or one object for a single record.",
      }),
    ),
    parse: Type.Optional(parseSchema),
    effect: Type.Optional(
      Type.Enum(["read", "write"], { description: "Default: read for GET and HEAD, else write." }),
    ),
    max_bytes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000_000,
        default: limits.responseBytesMax,
        description: "Longest response, decompressed, in bytes.",
      }),
    ),
    for_each: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "A node that gives records: one request for each. The record is the root of the request's templates. Gives the `records` of every response, or the record itself with `status`.",
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
          requests: Type.Integer({ minimum: 1, maximum: 100_000 }),
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
          when: Type.String({
            minLength: 1,
            [EXPRESSION]: "verify",
            description: "Over the JSON body: true when the write is there.",
          }),
        },
        {
          additionalProperties: false,
          description:
            "How a write that may have happened is looked up, before it is sent again. A 404 means that it is not there.",
        },
      ),
    ),
    on_unknown: Type.Optional(
      Type.Enum(["review", "fail"], {
        default: "review",
        description:
          "A write that may have happened and can't be looked up: the operator says whether it did, or the run fails.",
      }),
    ),
    save: unbuilt("Keep the response as a file."),
  },
  { additionalProperties: false },
);

const THROTTLE_MS_MAX = 3_600_000;

export type HttpConfig = Static<typeof httpSchema>;
export type Paginate = Static<typeof paginateSchema>;

const UNBUILT_KEYS = ["save"] as const;
/** Set by the transport, or by the login. */
const RESERVED_HEADERS = new Set([
  ...[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "cookie",
  ],
  ...["accept-encoding", "proxy-authorization", "proxy-connection"],
]);

/** Called with any config: of a broken one it says what can be said. */
export function effectOf(config: {
  readonly effect?: unknown;
  readonly request?: unknown;
}): "read" | "write" {
  if (config.effect === "read" || config.effect === "write") return config.effect;
  const { method = "GET" } = (config.request ?? {}) as { readonly method?: unknown };
  return method === "GET" || method === "HEAD" ? "read" : "write";
}

/** Mistakes that the schema can't express, and what design page 3 has but isn't built yet. */
export function httpFindings(raw: JsonObject, common: CheckedCommon | undefined): readonly ConfigFinding[] {
  const config = readConfig(httpSchema, raw);
  const findings: ConfigFinding[] = UNBUILT_KEYS.filter((key) => config[key] !== undefined).map((key) => ({
    path: [key],
    message: `\`${key}\` is not built yet`,
  }));
  const results = [config.records, config.parse, config.save].filter((key) => key !== undefined);
  if (results.length > 1)
    findings.push({ path: [], message: "an http node has one of `records`, `parse` and `save`" });
  if (config.parse !== undefined) {
    findings.push(
      ...parseFindings(config.parse).map(({ path, message }) => ({ path: ["parse", ...path], message })),
    );
  }
  return [
    ...findings,
    ...requestFindings(config),
    ...headerFindings(config, common),
    ...paginateFindings(config),
    ...eachFindings(config),
    ...writeFindings(config),
  ];
}

/** Which variables the templates of a request see: the record's with `for_each`, `$token` in writes. */
export function requestScopeOf(config: JsonObject): ExpressionScopeKind {
  const isWrite = effectOf(config) === "write";
  if (config["for_each"] === undefined) return isWrite ? "write" : "run";
  return isWrite ? "record-write" : "record";
}

function requestFindings({
  request,
}: {
  readonly request: Omit<HttpConfig["request"], "multipart"> & { readonly multipart?: Json };
}): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  const url = urlTemplateProblem(request.url);
  if (url !== null) findings.push({ path: ["request", "url"], message: url });
  if (request.multipart !== undefined)
    findings.push({ path: ["request", "multipart"], message: "`multipart` is not built yet" });
  const [body, second] = (["json", "form", "text"] as const).filter((key) => request[key] !== undefined);
  if (second !== undefined)
    findings.push({ path: ["request", second], message: "a request has one body: `json`, `form` or `text`" });
  const method = request.method ?? "GET";
  if (body !== undefined && (method === "GET" || method === "HEAD")) {
    findings.push({
      path: ["request", body],
      message: `a ${method} request has no body; for a search by POST say \`method: POST\` and \`effect: read\``,
    });
  }
  return findings;
}

function headerFindings(
  { request }: HttpConfig,
  common: CheckedCommon | undefined,
): readonly ConfigFinding[] {
  const seen = new Set<string>();
  return Object.entries(request.headers ?? {}).flatMap(([name, value]): readonly ConfigFinding[] => {
    const path = ["request", "headers", name];
    const lower = name.toLowerCase();
    const isRepeated = seen.has(lower);
    seen.add(lower);
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/.test(lower))
      return [{ path, message: "this is not a header name" }];
    if (RESERVED_HEADERS.has(lower))
      return [{ path, message: `a node may not set ${lower}: the service does` }];
    if (isRepeated)
      return [{ path, message: "the header is there twice; header names have no upper and lower case" }];
    if (lower === "authorization" && common !== undefined && common.credential !== null) {
      return [{ path, message: "the node has a credential, whose strategy logs in; drop this header" }];
    }
    return typeof value === "string" && /[\r\n\u0000]/.test(value)
      ? [{ path, message: "a header value has no line breaks" }]
      : [];
  });
}

function paginateFindings({ paginate, records, parse }: HttpConfig): readonly ConfigFinding[] {
  if (paginate === undefined) return [];
  const at = (key: string, message: string): ConfigFinding => ({ path: ["paginate", key], message });
  const findings: ConfigFinding[] = [];
  const kinds = (["cursor", "page", "offset", "link_header"] as const).filter(
    (key) => paginate[key] !== undefined,
  );
  if (kinds.length !== 1)
    return [
      {
        path: ["paginate"],
        message: "`paginate` has exactly one of `cursor`, `page`, `offset` and `link_header`",
      },
    ];
  if (records === undefined && parse === undefined)
    findings.push({
      path: ["paginate"],
      message: "only records have pages: give the node `records` or `parse`",
    });
  if (kinds[0] === "link_header") {
    if (paginate.param !== undefined)
      findings.push(at("param", "a link_header is a whole url; it takes no `param`"));
  } else if (paginate.param === undefined) {
    findings.push({
      path: ["paginate"],
      message: `\`${kinds[0] ?? ""}\` needs \`param\`, the query parameter that carries it`,
    });
  }
  for (const key of ["size", "size_param"] as const) {
    if (paginate[key] !== undefined && kinds[0] !== "offset")
      findings.push(at(key, `\`${key}\` belongs to \`offset\``));
  }
  if (paginate.size_param !== undefined && paginate.size === undefined)
    findings.push(at("size_param", "`size_param` sends `size`: give the node one"));
  if (kinds[0] === "cursor" && parse !== undefined && parse.format !== "json") {
    findings.push(
      at(
        "cursor",
        "a cursor is read from a JSON body; with this format use `page`, `offset` or `link_header`",
      ),
    );
  }
  return findings;
}

function eachFindings(config: HttpConfig): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  if (config.for_each === undefined && config.concurrency !== undefined)
    findings.push({ path: ["concurrency"], message: "`concurrency` belongs to `for_each`" });
  if (config.for_each !== undefined && config.paginate !== undefined)
    findings.push({ path: ["paginate"], message: "a node with `for_each` has no pages of its own" });
  const per = config.throttle === undefined ? undefined : parseDuration(config.throttle.per);
  if (config.throttle !== undefined && (per === undefined || per === 0 || per > THROTTLE_MS_MAX))
    findings.push({ path: ["throttle", "per"], message: "`per` is a duration from 1ms to 1h, e.g. 1s" });
  return findings;
}

function writeFindings(config: HttpConfig): readonly ConfigFinding[] {
  if (effectOf(config) === "read") {
    return (["verify", "on_unknown"] as const)
      .filter((key) => config[key] !== undefined)
      .map((key) => ({ path: [key], message: `\`${key}\` belongs to writes, and this node reads` }));
  }
  const findings: ConfigFinding[] = [];
  if (config.paginate !== undefined)
    findings.push({
      path: ["paginate"],
      message: "a write has no pages; say `effect: read` if this request only reads",
    });
  if (config.parse !== undefined && config.parse.format !== "json")
    findings.push({
      path: ["parse", "format"],
      message: "the answer of a write is read as JSON: use `records`, or a later `parse` node",
    });
  if (config.verify !== undefined) {
    const { request } = config.verify;
    findings.push(
      ...requestFindings({ request }).map(({ path, message }) => ({ path: ["verify", ...path], message })),
    );
  }
  return findings;
}
