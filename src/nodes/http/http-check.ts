import { extractFindings } from "#answers/extract.ts";
import { isSelector } from "#answers/is-selector.ts";
import { submitFindings } from "#answers/submit.ts";
import { parseDuration } from "#domain/duration.ts";
import { hasDestination, hasNoBody } from "#domain/http-methods.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { readConfig } from "#domain/read-config.ts";
import { splitUrlTemplate, urlTemplateProblem } from "#domain/url-template.ts";
import type { CheckedCommon, ConfigFinding } from "#nodes/define-node.ts";
import { effectOf, httpSchema, isStreamed, type HttpConfig, type HttpRequest } from "./http-config.ts";
import { paginateFindings } from "./paginate-check.ts";
import { parseFindings } from "#nodes/parse/parse-config.ts";
import { listPath } from "#nodes/parse/parse-records.ts";
import { untilFindings } from "./http-until.ts";

const THROTTLE_MS_MAX = 3_600_000;
const BODIES = ["json", "form", "text", "multipart", "file"] as const;
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

/** Mistakes that the schema can't express. */
export function httpFindings(raw: JsonObject, common: CheckedCommon | undefined): readonly ConfigFinding[] {
  const config = readConfig(httpSchema, raw);
  const findings: ConfigFinding[] = [];
  const results = [config.records, config.parse, config.extract, config.save].filter(
    (key) => key !== undefined,
  );
  if (results.length > 1)
    findings.push({
      path: [],
      message: "an http node has only one of `records`, `parse`, `extract` and `save`",
    });
  if (config.parse !== undefined) {
    findings.push(
      ...parseFindings(config.parse).map(({ path, message }) => ({ path: ["parse", ...path], message })),
    );
  }
  if ((config.max_bytes ?? 0) > limits.wholeBytesMax && !isStreamed(config)) {
    findings.push({
      path: ["max_bytes"],
      message: `only streamed responses may have more than ${limits.wholeBytesMax} bytes: \`save: file\`, ndjson, csv, and JSON whose list is at the top level or at a path of names, without \`cursor\`, \`next_url\` and \`while\` in \`paginate\` and without conditions on the text in \`expect\` and \`until\``,
    });
  }
  return [
    ...findings,
    ...requestFindings(config),
    ...headerFindings(config, common),
    ...paginateFindings(config),
    ...formFindings(config),
    ...untilFindings(config),
    ...eachFindings(config),
    ...recordFindings(config),
    ...selectorFindings(config),
    ...writeFindings(config),
  ];
}

function requestFindings({ request }: { readonly request: HttpRequest }): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  const url = urlTemplateProblem(request.url);
  if (url !== null) findings.push({ path: ["request", "url"], message: url });
  const [body, second] = BODIES.filter((key) => request[key] !== undefined);
  if (second !== undefined) {
    findings.push({
      path: ["request", second],
      message: "a request has only one body: `json`, `form`, `text`, `multipart` or `file`",
    });
  }
  findings.push(...partFindings(request.multipart));
  const method = request.method ?? "GET";
  if (body !== undefined && hasNoBody(method)) {
    findings.push({
      path: ["request", body],
      message: `a ${method} request has no body; for a search by POST set \`method: POST\` and \`effect: read\``,
    });
  }
  const names = Object.keys(request.headers ?? {}).map((name) => name.toLowerCase());
  if (hasDestination(method) && !names.includes("destination"))
    findings.push({
      path: ["request", "headers"],
      message: `a ${method} request needs the header \`Destination\`: a path, or a url within the hosts`,
    });
  return findings;
}

/** The author and never the data determines which file a part sends: `{ file }` must be in the document itself. */
function partFindings(multipart: HttpRequest["multipart"]): readonly ConfigFinding[] {
  return Object.entries(multipart ?? {}).flatMap(([name, value]) => {
    const path = ["request", "multipart", name];
    return Array.isArray(value)
      ? value.flatMap((item: Json, index: number) => partFinding(item, [...path, index]))
      : partFinding(value, path);
  });
}

function partFinding(part: Json, path: ConfigFinding["path"]): readonly ConfigFinding[] {
  if (Array.isArray(part))
    return [{ path, message: "a part is a string, a file or a list of these, but not a list of lists" }];
  if (!isJsonObject(part)) return [];
  if (typeof part["file"] !== "string")
    return [
      { path, message: "a part with keys is a file and needs the key `file`: the node that outputs it" },
    ];
  return Object.entries(part).flatMap(([key, value]): readonly ConfigFinding[] => {
    if (!["file", "filename", "type"].includes(key))
      return [{ path: [...path, key], message: "a file has only the keys `file`, `filename` and `type`" }];
    return typeof value === "string" ? [] : [{ path: [...path, key], message: "this must be a string" }];
  });
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
      return [{ path, message: "this is not a valid header name" }];
    if (RESERVED_HEADERS.has(lower))
      return [{ path, message: `a node can't set ${lower}, because the service sets it` }];
    if (isRepeated)
      return [{ path, message: "the header is listed twice; header names are case-insensitive" }];
    if (lower === "authorization" && common !== undefined && common.credential !== null) {
      return [{ path, message: "the node has a credential, whose strategy logs in; remove this header" }];
    }
    return typeof value === "string" && /[\r\n\u0000]/.test(value)
      ? [{ path, message: "a header value must not contain line breaks" }]
      : [];
  });
}

/** Mistakes in `submit` and `extract`, which logins have as well. */
function formFindings({ request, submit, extract = {}, paginate }: HttpConfig): readonly ConfigFinding[] {
  const findings = Object.entries(extract).flatMap(([name, each]) =>
    extractFindings(each, ["css", "json", "regex", "header"], ["extract", name]),
  );
  if (submit === undefined) return findings;
  if (request.method !== undefined && request.method !== "GET")
    return [
      ...findings,
      {
        path: ["request", "method"],
        message:
          "with `submit`, the request gets the form's page by GET; the page determines how the form is sent",
      },
    ];
  if (paginate !== undefined)
    findings.push({
      path: ["paginate"],
      message: "a form is submitted once and has no pages; send its data with a `request`, without `submit`",
    });
  return [...findings, ...submitFindings(submit, ["submit"])];
}

function eachFindings(config: HttpConfig): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  const { max_bytes: bytesMax = 0 } = config;
  if (config.for_each !== undefined && config.save !== undefined && bytesMax > limits.responseBytesMax)
    findings.push({
      path: ["max_bytes"],
      message: `with \`for_each\` a file is part of its record and has at most ${limits.responseBytesMax} bytes; without \`for_each\` it may be longer`,
    });
  if (config.for_each === undefined && config.concurrency !== undefined)
    findings.push({ path: ["concurrency"], message: "`concurrency` belongs to `for_each`" });
  const per = config.throttle === undefined ? undefined : parseDuration(config.throttle.per);
  if (config.throttle !== undefined && (per === undefined || per === 0 || per > THROTTLE_MS_MAX))
    findings.push({ path: ["throttle", "per"], message: "`per` is a duration from 1ms to 1h, e.g. 1s" });
  return findings;
}

function selectorFindings({ expect, until, verify, refused = [] }: HttpConfig): readonly ConfigFinding[] {
  const places = [
    { path: ["expect", "css"], css: expect?.css },
    { path: ["until", "css"], css: until?.css },
    { path: ["verify", "expect", "css"], css: verify?.expect?.css },
    ...(Array.isArray(refused)
      ? refused.map(({ css }, index) => ({ path: ["refused", index, "css"], css }))
      : [{ path: ["refused", "css"], css: refused.css }]),
  ];
  return places.flatMap(({ path, css }) =>
    css === undefined || isSelector(css) ? [] : [{ path, message: `\`${css}\` is not a CSS selector` }],
  );
}

function recordFindings({ records, parse, expect, ...config }: HttpConfig): readonly ConfigFinding[] {
  if (expect?.min_records === undefined) return [];
  const path = ["expect", "min_records"];
  if (effectOf(config) === "write")
    return [
      {
        path,
        message: "`min_records` is only for reads: a write has happened, however many records it returns",
      },
    ];
  return records === undefined && parse === undefined
    ? [{ path, message: "only records are counted: add `records` or `parse` to the node" }]
    : [];
}

/** Warnings about a request. */
export function httpWarnings(raw: JsonObject): readonly ConfigFinding[] {
  const config = readConfig(httpSchema, raw);
  return effectOf(config) === "write" ? writeWarnings(config) : readWarnings(config);
}

function writeWarnings({ expect, refused, verify }: HttpConfig): readonly ConfigFinding[] {
  if (verify !== undefined && verify.when === undefined && verify.expect === undefined)
    return [
      {
        path: ["verify"],
        message:
          "a sign-in page or an error page with status 200 doesn't contain it either, so the write would be sent again; add to `verify.expect` a condition that the look-up's page always meets",
      },
    ];
  if (
    verify?.text !== undefined &&
    JSON.stringify(verify.request).includes(JSON.stringify(verify.text).slice(1, -1))
  )
    return [
      {
        path: ["verify", "text"],
        message:
          "the look-up sends this text, and a page that repeats the search term (`no results for …`) contains it, too, so the write would count as done; use `css` with the element of a result and `:contains(…)`",
      },
    ];
  if (expect === undefined || refused !== undefined || verify !== undefined) return [];
  return [
    {
      path: ["expect"],
      message:
        "an answer that doesn't meet this may still have executed the write, so an operator must decide each time; add `refused` to recognise the target's refusals, or `verify` to look up the write",
    },
  ];
}

function readWarnings({ records, parse, expect, ...config }: HttpConfig): readonly ConfigFinding[] {
  const source = records ?? parse?.records;
  // For a path, it is noticed if the answer no longer has a list there; an expression just evaluates to nothing.
  const isPlain = source === undefined || source.trim() === "$" || listPath(source) !== null;
  if (isPlain || config.for_each !== undefined) return [];
  const { min_records: fewest, text, json, css } = expect ?? {};
  if ([fewest, text, json, css].some((key) => key !== undefined)) return [];
  return [
    {
      path: records === undefined ? ["parse", "records"] : ["records"],
      message:
        "if this expression finds nothing, for example because the target has changed, the node outputs no records; set `expect.min_records` to the least number of records (0: none is fine)",
    },
  ];
}

function writeFindings(config: HttpConfig): readonly ConfigFinding[] {
  if (effectOf(config) === "read") {
    return (["verify", "on_unknown", "refused"] as const)
      .filter((key) => config[key] !== undefined)
      .map((key) => ({ path: [key], message: `\`${key}\` is only for writes, and this node reads` }));
  }
  const findings: ConfigFinding[] = [];
  if (config.paginate !== undefined)
    findings.push({
      path: ["paginate"],
      message: "a write can't be paginated; set `effect: read` if this request only reads",
    });
  if (config.save !== undefined)
    findings.push({
      path: ["save"],
      message: "the answer of a write is not a file; set `effect: read` if this request only reads",
    });
  if (config.parse !== undefined && config.parse.format !== "json")
    findings.push({
      path: ["parse", "format"],
      message:
        config.for_each === undefined
          ? "the answer of a write is read as JSON: use `records`, or a later `parse` node; set `effect: read` if this request only reads"
          : "the answer of a write is read as JSON: use `records`; set `effect: read` if this request only reads",
    });
  return config.verify === undefined ? findings : [...findings, ...verifyFindings(config.verify)];
}

function verifyFindings(verify: NonNullable<HttpConfig["verify"]>): readonly ConfigFinding[] {
  const { request, css } = verify;
  const findings = requestFindings({ request }).map(({ path, message }) => ({
    path: ["verify", ...path],
    message,
  }));
  if (verify.when === undefined && verify.text === undefined && css === undefined)
    findings.push({
      path: ["verify"],
      message:
        "add a condition that is met if the write is there: `when` (over a JSON body), `text` or `css`",
    });
  const parts = css === undefined ? [] : splitUrlTemplate(css);
  if (parts === null)
    findings.push({ path: ["verify", "css"], message: "the selector has a `{{` without a matching `}}`" });
  else if (css !== undefined) {
    const shape = parts.map((part) => (part.kind === "literal" ? part.text : "x")).join("");
    if (!isSelector(shape))
      findings.push({ path: ["verify", "css"], message: `\`${css}\` is not a CSS selector` });
  }
  return findings;
}
