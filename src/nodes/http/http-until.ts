import { findMiss, type Expectation } from "#answers/expectation.ts";
import { parseDuration } from "#domain/duration.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure, type ConfigFinding, type NodeContext } from "#nodes/define-node.ts";
import { effectOf, type HttpConfig, type Until } from "./http-config.ts";
import { answerTools, exchange, mediaType, type Subject } from "./http-exchange.ts";
import type { PreparedRequest } from "./http-request.ts";

/**
 * `until` (docs/nodes/http.md): repeats the request until its answer meets the conditions. Each answer must also meet `expect`,
 * so that the node fails as soon as the target's job fails. Without `until` the request is sent once. Throws NodeFailure.
 */
export async function exchangeUntil(
  context: NodeContext,
  config: HttpConfig,
  request: PreparedRequest,
  subject: Subject,
): Promise<OutboundResponse> {
  const { until } = config;
  for (;;) {
    const response = await exchange(context, config, request, subject);
    if (until === undefined) return response;
    const missed = await missedOf(context, until, response, subject);
    if (missed === null) return response;
    if (await context.askAgain(timesOf(until))) continue;
    const type = mediaType(response.headers.get("content-type"));
    throw new NodeFailure(
      `${subject.place}: \`until\` was not met for ${until.for}; the last answer (${response.status}, ${type}, ${response.body.byteLength} bytes): ${missed}.`,
      { answer: response },
    );
  }
}

/** Why an answer is not final, as a phrase that uses the document's keys; null: it is final. */
async function missedOf(
  context: NodeContext,
  until: Until,
  response: OutboundResponse,
  { place, seen }: Subject,
): Promise<string | null> {
  const { when, status, text, css } = until;
  if (status !== undefined && !status.includes(response.status))
    return `expected status ${status.join(" or ")}`;
  const named: Expectation = { ...pick({ json: when, text, css }), status: [response.status] };
  const miss = await findMiss(
    answerTools(context, { place: `${place}: until`, seen }, "when"),
    named,
    response,
  );
  return miss?.kind === "content" ? miss.phrase : null;
}

function pick(keys: { readonly [key in keyof Expectation]: Expectation[key] | undefined }): Expectation {
  return Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
}

function timesOf({ every, for: total }: Until): { readonly everyMs: number; readonly forMs: number } {
  return {
    everyMs: must(parseDuration(every), "a checked duration"),
    forMs: must(parseDuration(total), "a checked duration"),
  };
}

/** Mistakes in `until` that the schema can't express. */
export function untilFindings(config: HttpConfig): readonly ConfigFinding[] {
  const { until, for_each: each, submit, parse } = config;
  if (until === undefined) return [];
  if (effectOf(config) === "write")
    return [
      {
        path: ["until"],
        message:
          "a write is sent once, and `until` repeats the request: move `until` to a later node that reads, or set `effect: read` if this request only reads",
      },
    ];
  if (each !== undefined)
    return [
      {
        path: ["until"],
        message:
          "a node with `for_each` sends one request for each record; use a `loop`, whose steps may have `until`",
      },
    ];
  if (submit !== undefined)
    return [
      {
        path: ["until"],
        message:
          "`submit` sends a form once, and `until` repeats the request: move `until` to a later node that reads",
      },
    ];
  const findings: ConfigFinding[] = [];
  if ([until.when, until.status, until.text, until.css].every((key) => key === undefined))
    findings.push({
      path: ["until"],
      message: "`until` needs a condition for the last answer: `when`, `status`, `text` or `css`",
    });
  if (until.when !== undefined && parse !== undefined && parse.format !== "json")
    findings.push({
      path: ["until", "when"],
      message: "`when` is an expression over a JSON body; with this format use `status`, `text` or `css`",
    });
  return [...findings, ...timeFindings(until)];
}

function timeFindings({ every, for: total }: Until): readonly ConfigFinding[] {
  const [everyMs, forMs] = [parseDuration(every), parseDuration(total)];
  const findings: ConfigFinding[] = [];
  if (everyMs === undefined || everyMs < limits.pollEveryMsMin)
    findings.push({ path: ["until", "every"], message: "`every` is a duration of 1s or more, e.g. 10s" });
  if (forMs === undefined || forMs < limits.pollEveryMsMin || forMs > limits.pollForMsMax)
    findings.push({ path: ["until", "for"], message: "`for` is a duration from 1s to 7d, e.g. 10m" });
  else if (everyMs !== undefined && everyMs > forMs)
    findings.push({
      path: ["until", "every"],
      message: "`every` is longer than `for`: it would ask twice at most; shorten it",
    });
  return findings;
}
