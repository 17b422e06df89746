import type { Gate, GatePolicy, GateRequest, GateResponse } from "#outbound/gate.ts";
import { decodeText } from "#outbound/read-body.ts";
import {
  HIDDEN,
  isSecretName,
  withoutShort,
  withoutTokens,
  type AnswerOf,
} from "#engine/redaction/hide-tokens.ts";
import { makeRedactor, type Redactor } from "#engine/redaction/redact.ts";
import type { RunSecret } from "#engine/redaction/run-secrets.ts";

/** The number of bytes kept of each body. */
const BODY_BYTES_MAX = 262_144;

/** One traced exchange: its ordinal, the node or login step, and the complete exchange without secrets. */
export interface TracedExchange {
  readonly number: number;
  /** A node's id, or the login step as the document names it. */
  readonly step: string;
  readonly text: string;
}

/** Traces requests and answers for the author of a run. An exchange is only written once all its possible secrets are known. */
export interface Trace {
  /** Following requests belong to this step. */
  at(step: string): void;
  /** The same gate, traced. */
  watch(gate: Gate): Gate;
  /** A login's requests are held until this call: its secrets are now known, those of its credential (`given`) at any length. */
  endLogin(secrets: readonly RunSecret[], given: readonly string[]): Promise<void>;
  /** Following requests belong to nodes. `redact` knows the secrets of all logins. */
  beginNodes(redact: Redactor): void;
}

interface Exchange {
  readonly number: number;
  readonly step: string;
  readonly request: GateRequest;
  /** Names of headers that a login adds, by hop. */
  readonly hops: { readonly url: URL; readonly added: readonly string[]; cookies: readonly string[] }[];
  /** For a body that is saved to a file. */
  readonly kept: { bytes: Buffer; total: number };
}

type Outcome = { readonly tookMs: number } & (
  | { readonly response: GateResponse }
  | { readonly problem: string }
);

export function openTrace(keep: (exchange: TracedExchange) => void): Trace {
  let number = 0;
  let step = "login";
  let redact: Redactor | null = null;
  let waiting: (readonly [Exchange, Outcome])[] = [];
  const end = async (exchange: Exchange, outcome: Outcome): Promise<void> => {
    if (redact === null) waiting.push([exchange, outcome]);
    else keep(await written(exchange, outcome, { redact, of: "node", short: [] }));
  };
  const watch = (gate: Gate): Gate => ({
    ...gate,
    send: async (request, policy, signal) => {
      const beganMs = performance.now();
      const exchange: Exchange = {
        number: ++number,
        step,
        request,
        hops: [],
        kept: { bytes: Buffer.alloc(0), total: 0 },
      };
      try {
        const response = await gate.send(request, watchedPolicy(policy, exchange), signal);
        await end(exchange, { response, tookMs: since(beganMs) });
        return response;
      } catch (error) {
        const problem = error instanceof Error ? error.message : "it failed";
        await end(exchange, { problem, tookMs: since(beganMs) });
        throw error;
      }
    },
    present: (certificate) => watch(gate.present(certificate)),
  });
  return {
    at: (name) => {
      step = name;
    },
    watch,
    endLogin: async (secrets, short) => {
      const [ended, known] = [waiting, makeRedactor(secrets)];
      waiting = [];
      for (const [exchange, outcome] of ended)
        keep(await written(exchange, outcome, { redact: known, of: "login", short }));
    },
    beginNodes: (known) => {
      redact = known;
    },
  };
}

const since = (beganMs: number): number => Math.round(performance.now() - beganMs);

function watchedPolicy(policy: GatePolicy, { hops, kept }: Exchange): GatePolicy {
  const { keep } = policy;
  return {
    ...policy,
    prepareHop: async (url, info) => {
      const added = (await policy.prepareHop?.(url, info)) ?? [];
      hops.push({ url, added: added.map(([name]) => name), cookies: [] });
      return added;
    },
    absorb: (url, setCookie) => {
      const hop = hops.at(-1);
      if (hop) hop.cookies = setCookie;
      policy.absorb?.(url, setCookie);
    },
    ...(keep && { keep: async (bytes) => await keep(copied(bytes, kept)) }),
  };
}

async function* copied(bytes: AsyncIterable<Uint8Array>, kept: Exchange["kept"]): AsyncIterable<Uint8Array> {
  for await (const chunk of bytes) {
    const room = BODY_BYTES_MAX - kept.bytes.length;
    if (room > 0) kept.bytes = Buffer.concat([kept.bytes, chunk.subarray(0, room)]);
    kept.total += chunk.length;
    yield chunk;
  }
}

/** How text is redacted: known secrets, and values that look like secrets. */
interface Cleaning {
  readonly redact: Redactor;
  readonly of: AnswerOf;
  readonly short: readonly string[];
}

const cleanLine = ({ redact, of, short }: Cleaning, text: string): string =>
  withoutTokens(withoutShort(redact.message(text), short), of);

async function written(
  { number, step, request, hops, kept }: Exchange,
  outcome: Outcome,
  cleaning: Cleaning,
): Promise<TracedExchange> {
  const [first] = hops;
  const lines = [
    `# ${number}. ${step}`,
    "",
    cleanLine(cleaning, `${request.method} ${request.url.href}`),
    ...request.headers.map(([name, value]) => headerLine(cleaning, name, value)),
    ...(first?.added ?? []).map((name) => `${name}: ${HIDDEN} (added by the login)`),
    ...(await bodyLines(cleaning, request.body, contentType(request.headers))),
    "",
    ...hops
      .slice(1)
      .flatMap((hop, index) => [
        `# redirected to ${cleanLine(cleaning, hop.url.href)}`,
        ...(hops[index]?.cookies ?? []).map(cookieLine),
      ]),
  ];
  if ("problem" in outcome)
    lines.push(`# no answer after ${outcome.tookMs} ms: ${cleanLine(cleaning, outcome.problem)}`);
  else {
    const { status, url, headers, body } = outcome.response;
    const [bytes, total] = outcome.response.kept ? [kept.bytes, kept.total] : [body, body.length];
    lines.push(
      `# ${status} from ${cleanLine(cleaning, url)} after ${outcome.tookMs} ms`,
      ...[...headers].map(([name, value]) => headerLine(cleaning, name, value)),
      ...(hops.at(-1)?.cookies ?? []).map(cookieLine),
      ...(await textLines(cleaning, bytes, total, headers.get("content-type"))),
    );
  }
  return { number, step, text: `${lines.join("\n")}\n` };
}

function headerLine(cleaning: Cleaning, name: string, value: string): string {
  return `${name}: ${isSecretName(name) ? HIDDEN : cleanLine(cleaning, value)}`;
}

/** A cookie's name and attributes, never its value. */
function cookieLine(line: string): string {
  const [pair = "", ...attributes] = line.split(";");
  return [`set-cookie: ${pair.split("=", 1)[0]}=${HIDDEN}`, ...attributes].join(";");
}

const contentType = (headers: GateRequest["headers"]): string | undefined =>
  headers.find(([name]) => name.toLowerCase() === "content-type")?.[1];

async function bodyLines(
  cleaning: Cleaning,
  body: GateRequest["body"],
  type: string | undefined,
): Promise<readonly string[]> {
  if (body === undefined) return [];
  if (typeof body === "string" || body instanceof Uint8Array) {
    const bytes = Buffer.from(body as string);
    return await textLines(cleaning, bytes, bytes.length, type);
  }
  const kept = { bytes: Buffer.alloc(0), total: 0 };
  for await (const _ of copied(body.open(), kept)) if (kept.total >= BODY_BYTES_MAX) break;
  return await textLines(cleaning, kept.bytes, body.sizeBytes, type);
}

/** A blank line, the body, and how much of it was omitted. */
async function textLines(
  cleaning: Cleaning,
  bytes: Uint8Array,
  total: number,
  type: string | undefined,
): Promise<readonly string[]> {
  if (total === 0) return [];
  const shown = bytes.subarray(0, BODY_BYTES_MAX);
  if (shown.includes(0)) return ["", `# ${total} bytes that are not text`];
  const { redact, of, short } = cleaning;
  const clean = withoutTokens(withoutShort(await redact.body(decodeText(shown, type)), short), of);
  // A cut could make a secret unrecognisable.
  const text = total > shown.length ? clean.slice(0, Math.max(0, clean.length - CUT_OFF_CHARACTERS)) : clean;
  const note = total > shown.length ? [`# cut here: the body has ${total} bytes`] : [];
  return ["", text, ...note];
}

/** A truncated body may end in the middle of a secret. */
const CUT_OFF_CHARACTERS = 8_192;
