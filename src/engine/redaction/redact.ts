import { HANDLE_PREFIX, REDACTED, withoutHandles } from "#domain/handle-text.ts";
import type { Json } from "#domain/json.ts";
import type { DataRecord } from "#domain/record.ts";
import {
  atOnce,
  cleanBytes,
  cleanJson,
  cleanLines,
  cleanStream,
  cleanText,
  findInSteps,
  inTurns,
  linesOf,
  type Cleaning,
} from "./clean-text.ts";
import { openRunSecrets, type RunSecret, type RunSecrets } from "./run-secrets.ts";

export type { RunSecret };

/**
 * Redacts a run's secrets from everything that it stores: the second net, after the door (`door.ts`). Data that later nodes read
 * (`lines`, `body`, `stream`) keeps its handles; data that is shown or kept permanently has none.
 */
export interface Redactor {
  /** A short text that is shown: a header, an address, a name. */
  text(text: string): string;
  /** A message for the log or the operator: also finds secrets in another letter case, as in host names. */
  message(text: string): string;
  /** A short JSON value that is shown, as text. Its strings, keys and numbers are redacted one by one, so that it stays JSON. */
  json(value: Json): string;
  /** A target's whole body: JSON stays JSON, even where the secret is a number. Yields to other work. */
  body(text: string): Promise<string>;
  /** Records as newline-delimited JSON in UTF-8. Yields to other work. */
  lines(records: readonly DataRecord[]): Promise<Buffer>;
  /** The same without waiting; null: they have more bytes, before they are redacted. */
  fewLines(records: readonly DataRecord[], bytesMax: number): Buffer | null;
  /** The same for records that are shown. */
  readonly shown: Pick<Redactor, "lines" | "fewLines">;
  /** A stream of any bytes. Yields to other work. */
  stream(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Adds secrets that the run received while it was executing. */
  add(secrets: readonly RunSecret[]): void;
  /** Adds values that replace each other, such as session cookies: if there are many, the newest count. */
  addPassing(values: readonly string[]): void;
  /** Whether there are no secrets. */
  readonly isIdle: boolean;
  /** Number of strings changed so far, here and at the door. */
  readonly changes: number;
}

/** docs/decisions/0014. `names`: words of the Blueprint's document; JSON keys among them stay. */
export function makeRedactor(
  secrets: readonly RunSecret[],
  names: ReadonlySet<string> = new Set(),
): Redactor {
  return redactorOf(openRunSecrets(secrets, names));
}

export function redactorOf(secrets: RunSecrets): Redactor {
  const cleaning: Cleaning = { secrets, place: () => REDACTED };
  const isIdle = (): boolean => secrets.inTexts.size === 0;
  const text = (given: string): string => withoutHandles(cleanText(given, cleaning));
  const lines = async (records: readonly DataRecord[]): Promise<Buffer> =>
    (await inTurns(cleanLines(records, cleaning))).bytes;
  const fewLines = (records: readonly DataRecord[], bytesMax: number): Buffer | null => {
    const bytes = Buffer.from(linesOf(records), "utf8");
    if (bytes.length > bytesMax) return null;
    return isIdle() ? bytes : atOnce(cleanLines(records, cleaning)).bytes;
  };
  return {
    text,
    message: (given) => cleanText(text(given), cleaning, secrets.inMessages),
    json(value) {
      const written = JSON.stringify(value);
      const isClean =
        isIdle() || atOnce(findInSteps(secrets.inTexts, Buffer.from(written, "utf8"))).length === 0;
      return withoutHandles(isClean ? written : JSON.stringify(cleanJson(value, cleaning)));
    },
    async body(given) {
      if (isIdle()) return given;
      const clean = await inTurns(cleanBytes(Buffer.from(given, "utf8"), cleaning));
      return clean?.toString("utf8") ?? given;
    },
    lines,
    fewLines,
    shown: {
      lines: async (records) => bytesWithoutHandles(await lines(records)),
      fewLines: (records, bytesMax) => {
        const few = fewLines(records, bytesMax);
        return few && bytesWithoutHandles(few);
      },
    },
    stream: (bytes) => (isIdle() ? bytes : cleanStream(bytes, cleaning)),
    add: (more) => secrets.add(more),
    addPassing: (values) => secrets.addPassing(values),
    get isIdle() {
      return isIdle();
    },
    get changes() {
      return secrets.changes;
    },
  };
}

/** Handles and their replacements are ASCII, so that the other bytes stay unchanged. */
export function bytesWithoutHandles(bytes: Buffer): Buffer {
  return bytes.includes(HANDLE_PREFIX, 0, "latin1")
    ? Buffer.from(withoutHandles(bytes.toString("latin1")), "latin1")
    : bytes;
}
