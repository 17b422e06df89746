import { setImmediate } from "node:timers/promises";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord } from "#domain/record.ts";
import { cutJson, replaceCuts } from "./cut-json.ts";
import { merged, type Cut } from "./cuts.ts";
import { makeSecretSearch, type SecretSearch } from "./secret-search.ts";

/** Takes a run's secrets out of what a target gave. */
export interface Redactor {
  /** A short text that a target gave: a header, an address, a name. */
  text(text: string): string;
  /** A message for the log or the operator: also where letters lost their case, as in a host name. */
  message(text: string): string;
  /** A short JSON value, as text. Its strings, keys and numbers are looked at one by one: what is stored stays JSON. */
  json(value: Json): string;
  /** A whole body that a target gave: JSON stays JSON, also where the secret is a number in it. Other work goes on meanwhile. */
  body(text: string): Promise<string>;
  /** Records as newline-delimited JSON, in UTF-8. Other work goes on meanwhile. */
  lines(records: readonly DataRecord[]): Promise<Buffer>;
  /** Bytes of any kind, as they come. Other work goes on meanwhile. */
  stream(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Looks for these too from now on: what the run was given while it ran. */
  add(secrets: readonly RunSecret[]): void;
  /** The same for values that replace each other, as the cookies of an idle session do: of many the newest count. */
  addPassing(values: readonly string[]): void;
  /** There is nothing to look for. */
  readonly isIdle: boolean;
  /** How many texts were changed so far. */
  readonly changes: number;
}

/** A value, and whether it is one only where it stands alone, as six digits do. */
export type RunSecret = string | { readonly value: string; readonly alone: true };

const PLACE = "[REDACTED]";

/** Bytes that are looked at in one step, and how long steps may take together before others have their turn. */
const STEP_BYTES = 131_072;
const TURN_MS = 4;
/** A text that begins before a step: its escapes are whole then. */
const OVERLAP_BYTES = 64;
/** A longer text that is a number or a string as a whole is no JSON of anybody's. */
const SCALAR_CHARACTERS_MAX = 65_536;

/**
 * Design, page 6, T11. `names` are words that the Blueprint's document holds: a key of JSON that is one of them says nothing that
 * its author did not know, and stays.
 */
export function makeRedactor(
  secrets: readonly RunSecret[],
  names: ReadonlySet<string> = new Set(),
): Redactor {
  const known = knownSecrets(secrets);
  let changes = 0;
  const isKept = (key: string): boolean => names.has(key);
  const cutText = (text: string, by: SecretSearch): string => {
    if (by.size === 0 || text === "") return text;
    const bytes = Buffer.from(text, "utf8");
    const cuts = atOnce(findInSteps(by, bytes));
    if (cuts.length === 0) return text;
    changes++;
    return replaceCuts(bytes, cuts, 0, PLACE).toString("utf8");
  };
  const clean: Clean = { text: (given) => cutText(given, known.inTexts), isKept };
  function* cleanBody(text: string): Generator<void, string> {
    if (known.inTexts.size === 0) return text;
    const bytes = Buffer.from(text, "utf8");
    const cuts = yield* findInSteps(known.inTexts, bytes);
    if (cuts.length === 0) return text;
    changes++;
    const cut = /^\s*[[{]/.test(text) ? yield* cutJson(bytes, cuts, PLACE, isKept) : null;
    if (cut !== null) return cut.toString("utf8");
    return cleanParsed(text, clean) ?? replaceCuts(bytes, cuts, 0, PLACE).toString("utf8");
  }
  return {
    text: (given) => clean.text(given),
    message: (given) => cutText(clean.text(given), known.inMessages),
    json(value) {
      const text = JSON.stringify(value);
      if (
        known.inTexts.size === 0 ||
        atOnce(findInSteps(known.inTexts, Buffer.from(text, "utf8"))).length === 0
      )
        return text;
      return JSON.stringify(cleanJson(value, clean));
    },
    body: async (text) => await inTurns(cleanBody(text)),
    async lines(records) {
      const bytes = Buffer.from(linesOf(records), "utf8");
      if (known.inTexts.size === 0) return bytes;
      const cuts = await inTurns(findInSteps(known.inTexts, bytes));
      return cuts.length === 0 ? bytes : await inTurns(cleanLines(records, bytes, cuts, clean));
    },
    stream: (bytes) =>
      known.inTexts.size === 0
        ? bytes
        : cleanStream(bytes, known.inTexts, () => {
            changes++;
          }),
    add: (secrets) => known.add(secrets),
    addPassing: (secrets) => known.addPassing(secrets),
    get isIdle() {
      return known.inTexts.size === 0;
    },
    get changes() {
      return changes;
    },
  };
}

/** What is looked for. */
interface Known {
  readonly inTexts: SecretSearch;
  readonly inMessages: SecretSearch;
  add(secrets: readonly RunSecret[]): void;
  addPassing(values: readonly string[]): void;
}

function knownSecrets(secrets: readonly RunSecret[]): Known {
  let inTexts = makeSecretSearch();
  // Few runs have a message: made when there is one.
  let inMessages: SecretSearch | null = null;
  const lasting: RunSecret[] = [];
  let passing: readonly string[] = [];
  const look = (more: readonly RunSecret[], search: SecretSearch | null): void => {
    for (const secret of more) {
      if (typeof secret === "string") search?.add(secret);
      else search?.add(secret.value, secret.alone);
    }
  };
  const add = (more: readonly RunSecret[]): void => {
    lasting.push(...more);
    for (const search of [inTexts, inMessages]) look(more, search);
  };
  add(secrets);
  return {
    get inTexts() {
      return inTexts;
    },
    get inMessages() {
      if (inMessages === null)
        look([...lasting, ...passing], (inMessages = makeSecretSearch({ ignoreCase: true })));
      return inMessages;
    },
    add,
    addPassing(values) {
      const added = [...new Set(values)].filter((value) => !passing.includes(value));
      passing = [...passing, ...added];
      if (passing.length <= limits.lateCookiesMax) {
        for (const search of [inTexts, inMessages]) look(added, search);
        return;
      }
      // Half of them go at once: to forget is to begin anew.
      passing = passing.slice(-limits.lateCookiesMax / 2);
      inMessages = null;
      look([...lasting, ...passing], (inTexts = makeSecretSearch()));
    },
  };
}

/** What cleans one text, and which keys stay. */
interface Clean {
  text(given: string): string;
  isKept(key: string): boolean;
}

function* findInSteps(search: SecretSearch, bytes: Buffer): Generator<void, readonly Cut[]> {
  if (bytes.length <= STEP_BYTES) return search.find(bytes);
  const found: Cut[] = [];
  const { reach } = search;
  const step = Math.max(STEP_BYTES, reach);
  for (let start = 0; start < bytes.length; start += step) {
    const first = Math.max(0, start - OVERLAP_BYTES);
    for (const cut of search.find(bytes.subarray(first, start + step + reach)))
      found.push({ start: cut.start + first, end: cut.end + first });
    yield;
  }
  return merged(found);
}

function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  let beganMs = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - beganMs < TURN_MS) continue;
    await setImmediate();
    beganMs = performance.now();
  }
}

/** The end of what has come is held back: a secret may begin there. */
async function* cleanStream(
  source: AsyncIterable<Uint8Array>,
  search: SecretSearch,
  changed: () => void,
): AsyncIterable<Uint8Array> {
  const step = Math.max(STEP_BYTES, search.reach);
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  const flush = async (isLast: boolean): Promise<Buffer> => {
    const bytes = Buffer.concat(waiting);
    const cuts = await inTurns(findInSteps(search, bytes));
    let end = isLast ? bytes.length : bytes.length - search.reach;
    // A cut at the end may be longer when more has come.
    for (const cut of cuts) if (cut.start < end && cut.end > end) end = cut.start;
    const whole = cuts.filter((cut) => cut.end <= end);
    if (whole.length > 0) changed();
    waiting = [bytes.subarray(end)];
    waitingBytes = bytes.length - end;
    return replaceCuts(bytes.subarray(0, end), whole, 0, PLACE);
  };
  for await (const chunk of source) {
    waiting.push(chunk);
    waitingBytes += chunk.length;
    if (waitingBytes < step + 2 * search.reach) continue;
    const ready = await flush(false);
    if (ready.length > 0) yield ready;
  }
  const rest = await flush(true);
  if (rest.length > 0) yield rest;
}

const linesOf = (records: readonly DataRecord[]): string =>
  `${records.map((record) => JSON.stringify(record)).join("\n")}\n`;

/** Only those records are taken apart in which something was found. */
function* cleanLines(
  records: readonly DataRecord[],
  bytes: Buffer,
  cuts: readonly Cut[],
  clean: Clean,
): Generator<void, Buffer> {
  const lines: Buffer[] = [];
  let start = 0;
  let next = 0;
  for (const record of records) {
    const end = bytes.indexOf(0x0a, start) + 1;
    const firstCut = next;
    while ((cuts[next]?.start ?? Infinity) < end) next++;
    const isTouched = next > firstCut || (cuts[next - 1]?.end ?? 0) > start;
    lines.push(
      isTouched
        ? Buffer.from(`${JSON.stringify(cleanRecord(record, clean))}\n`, "utf8")
        : bytes.subarray(start, end),
    );
    start = end;
    yield;
  }
  return Buffer.concat(lines);
}

/** The record's own keys stay, also when somebody's password is `isValid`. */
function cleanRecord({ data, errors, isValid }: DataRecord, clean: Clean): DataRecord {
  const name = (text: string): string => (clean.isKept(text) ? text : clean.text(text));
  return {
    data: cleanJson(data, clean) as JsonObject,
    errors: errors.map(({ field, code, message }) => ({
      field: field === null ? null : name(field),
      code: name(code),
      message: clean.text(message),
    })),
    isValid,
  };
}

/** Null: it is no JSON, or so deep that it can't be written again. */
function cleanParsed(text: string, clean: Clean): string | null {
  if (!/^\s*[[{]/.test(text) && text.length > SCALAR_CHARACTERS_MAX) return null;
  try {
    return JSON.stringify(cleanJson(JSON.parse(text) as Json, clean));
  } catch {
    return null;
  }
}

function cleanJson(value: Json, clean: Clean): Json {
  if (typeof value === "string") return clean.text(value);
  if (typeof value === "number") {
    const text = clean.text(String(value));
    return text === String(value) ? value : text;
  }
  if (Array.isArray(value)) return value.map((item: Json) => cleanJson(item, clean));
  if (!isJsonObject(value)) return value;
  // `fromEntries` defines: a key `__proto__` stays a key.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      clean.isKept(key) ? key : clean.text(key),
      cleanJson(item, clean),
    ]),
  );
}
