import { isUtf8 } from "node:buffer";
import { setImmediate } from "node:timers/promises";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { DataRecord } from "#domain/record.ts";
import { cutJson, jsonBreak, replaceCuts, type JsonPiece, type Place } from "./cut-json.ts";
import { merged, type Cut } from "./cuts.ts";
import type { RunSecrets } from "./run-secrets.ts";
import type { SecretSearch } from "./secret-search.ts";

/** The search, and the replacement of its matches. */
export interface Cleaning {
  readonly secrets: RunSecrets;
  readonly place: Place;
}

/** Bytes per step (initial, maximum, minimum), and how long consecutive steps may take before yielding. */
const FIRST_STEP_BYTES = 32_768;
const STEP_BYTES = 131_072;
const LEAST_STEP_BYTES = 8_192;
const TURN_MS = 4;
/** Bytes before a step that are searched with it, so that its escapes are complete. */
const OVERLAP_BYTES = 64;
/** A longer text that is a single number or string is not treated as JSON. */
const SCALAR_BYTES_MAX = 65_536;
/** The largest text that is parsed for redaction where cutting is impossible: parsing is one uninterrupted step. */
const PARSED_BYTES_MAX = 131_072;

/** Redacts a short text in one step. */
export function cleanText(
  text: string,
  { secrets, place }: Cleaning,
  search: SecretSearch = secrets.inTexts,
): string {
  if (search.size === 0 || text === "") return text;
  const bytes = Buffer.from(text, "utf8");
  const cuts = atOnce(findInSteps(search, bytes));
  if (cuts.length === 0) return text;
  secrets.countChange();
  return replaceCuts(bytes, cuts, 0, (found) => place(found, false)).toString("utf8");
}

/** Redacts a whole text: JSON stays JSON, even where part of a number is cut. null: nothing was found. */
export function* cleanBytes(bytes: Buffer, cleaning: Cleaning): Generator<void, Buffer | null> {
  const { secrets, place } = cleaning;
  if (secrets.inTexts.size === 0) return null;
  const cuts = yield* findInSteps(secrets.inTexts, bytes);
  if (cuts.length === 0) return null;
  secrets.countChange();
  const cut = beginsAsJson(bytes) ? yield* cutJson(bytes, cuts, place, (key) => secrets.isKept(key)) : null;
  return cut ?? cleanParsed(bytes, cleaning) ?? replaceCuts(bytes, cuts, 0, (found) => place(found, false));
}

/** Redacts a stream. Its current end is held back, because a secret may begin there. JSON stays JSON. */
export async function* cleanStream(
  source: AsyncIterable<Uint8Array>,
  cleaning: Cleaning,
): AsyncIterable<Uint8Array> {
  const search = cleaning.secrets.inTexts;
  const step = Math.max(STEP_BYTES, search.reach);
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let isJson: boolean | null = null;
  let inString = false;
  const flush = async (isLast: boolean): Promise<Buffer> => {
    const bytes = Buffer.concat(waiting);
    isJson ??= beginsAsJson(bytes);
    const cuts = await inTurns(findInSteps(search, bytes));
    const piece = isLast
      ? { end: bytes.length, inString }
      : pieceBefore(bytes, bytes.length - search.reach, cuts, isJson, inString);
    const ready = await inTurns(cleanPiece(bytes, { end: piece.end, inString }, cuts, isJson, cleaning));
    ({ inString } = piece);
    waiting = [bytes.subarray(piece.end)];
    waitingBytes = bytes.length - piece.end;
    return ready;
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

/** How far a stream may be passed on: no match is split, as it may grow when more data arrives. */
function pieceBefore(
  bytes: Buffer,
  end: number,
  cuts: readonly Cut[],
  isJson: boolean,
  inString: boolean,
): JsonPiece {
  const crossed = cuts.find((cut) => cut.start < end && cut.end > end);
  const before = crossed?.start ?? end;
  if (!isJson) return { end: before, inString: false };
  const piece = jsonBreak(bytes, before, inString);
  const across = cuts.find((cut) => cut.start < piece.end && cut.end > piece.end);
  return across === undefined ? piece : jsonBreak(bytes, across.start, inString);
}

function* cleanPiece(
  bytes: Buffer,
  piece: JsonPiece,
  cuts: readonly Cut[],
  isJson: boolean,
  { secrets, place }: Cleaning,
): Generator<void, Buffer> {
  const inside = cuts.filter((cut) => cut.end <= piece.end);
  if (inside.length === 0) return bytes.subarray(0, piece.end);
  secrets.countChange();
  const cut = isJson ? yield* cutJson(bytes, inside, place, (key) => secrets.isKept(key), piece) : null;
  return cut ?? replaceCuts(bytes.subarray(0, piece.end), inside, 0, (found) => place(found, false));
}

/** Redacts a short JSON value in one step: its strings, keys and numbers one by one. */
export function cleanJson(value: Json, cleaning: Cleaning): Json {
  if (typeof value === "string") return cleanText(value, cleaning);
  if (typeof value === "number") return cleanNumber(value, cleaning);
  if (Array.isArray(value)) return value.map((item: Json) => cleanJson(item, cleaning));
  if (!isJsonObject(value)) return value;
  // `fromEntries` defines properties: a key `__proto__` stays a key.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [cleanKey(key, cleaning), cleanJson(item, cleaning)]),
  );
}

function cleanNumber(value: number, cleaning: Cleaning): Json {
  const written = String(value);
  const { place, secrets } = cleaning;
  const whole: Cleaning = {
    secrets,
    place: (found) => place(found, found.length === written.length),
  };
  const text = cleanText(written, whole);
  return text === written ? value : text;
}

const cleanKey = (key: string, cleaning: Cleaning): string =>
  cleaning.secrets.isKept(key) ? key : cleanText(key, cleaning);

/** Records as newline-delimited JSON in UTF-8, with the new lines of changed ones by index. */
export interface CleanLines {
  readonly bytes: Buffer;
  readonly touched: ReadonlyMap<number, DataRecord>;
}

/** Only records with a match are parsed. */
export function* cleanLines(records: readonly DataRecord[], cleaning: Cleaning): Generator<void, CleanLines> {
  const bytes = Buffer.from(linesOf(records), "utf8");
  const touched = new Map<number, DataRecord>();
  const search = cleaning.secrets.inTexts;
  const cuts = search.size === 0 ? [] : yield* findInSteps(search, bytes);
  if (cuts.length === 0) return { bytes, touched };
  const lines: Buffer[] = [];
  let start = 0;
  let next = 0;
  for (const [place, record] of records.entries()) {
    const end = bytes.indexOf(0x0a, start) + 1;
    const firstCut = next;
    while ((cuts[next]?.start ?? Infinity) < end) next++;
    const isTouched = next > firstCut || (cuts[next - 1]?.end ?? 0) > start;
    if (isTouched) {
      const clean = cleanRecord(record, cleaning);
      touched.set(place, clean);
      lines.push(Buffer.from(`${JSON.stringify(clean)}\n`, "utf8"));
    } else lines.push(bytes.subarray(start, end));
    start = end;
    yield;
  }
  return { bytes: Buffer.concat(lines), touched };
}

export const linesOf = (records: readonly DataRecord[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("");

/** The record's own keys stay, even if someone's password is `isValid`. */
function cleanRecord({ data, errors, isValid }: DataRecord, cleaning: Cleaning): DataRecord {
  return {
    data: cleanJson(data, cleaning) as JsonObject,
    errors: errors.map(({ field, code, message }) => ({
      field: field === null ? null : cleanKey(field, cleaning),
      code: cleanKey(code, cleaning),
      message: cleanText(message, cleaning),
    })),
    isValid,
  };
}

/** null: not JSON, or too long or too deep to be serialised again. */
function cleanParsed(bytes: Buffer, cleaning: Cleaning): Buffer | null {
  if (bytes.length > (beginsAsJson(bytes) ? PARSED_BYTES_MAX : SCALAR_BYTES_MAX) || !isUtf8(bytes))
    return null;
  try {
    return Buffer.from(
      JSON.stringify(cleanJson(JSON.parse(bytes.toString("utf8")) as Json, cleaning)),
      "utf8",
    );
  } catch {
    return null;
  }
}

/** A list or an object. */
function beginsAsJson(bytes: Uint8Array): boolean {
  let at = 0;
  while (bytes[at] === 0x20 || (bytes[at] ?? 0xff) - 9 <= 4) at++;
  return bytes[at] === 0x5b || bytes[at] === 0x7b;
}

/** A text crafted to be slow is searched in smaller steps. */
export function* findInSteps(search: SecretSearch, bytes: Buffer): Generator<void, readonly Cut[]> {
  const { reach } = search;
  let step = Math.max(FIRST_STEP_BYTES, reach);
  if (bytes.length <= step) return search.find(bytes);
  const found: Cut[] = [];
  for (let start = 0; start < bytes.length;) {
    const first = Math.max(0, start - OVERLAP_BYTES);
    const beganMs = performance.now();
    for (const cut of search.find(bytes.subarray(first, start + step + reach)))
      found.push({ start: cut.start + first, end: cut.end + first });
    start += step;
    const isSlow = performance.now() - beganMs > TURN_MS;
    step = Math.max(isSlow ? step / 2 : Math.min(2 * step, STEP_BYTES), LEAST_STEP_BYTES, reach);
    yield;
  }
  return merged(found);
}

export function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Yields to the event loop every few milliseconds. */
export async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  let beganMs = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - beganMs < TURN_MS) continue;
    await setImmediate();
    beganMs = performance.now();
  }
}
