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
  type Cleaning,
} from "./clean-text.ts";
import { openRunSecrets, type RunSecret, type RunSecrets } from "./run-secrets.ts";

export type { RunSecret };

/**
 * Takes a run's secrets out of what the run stores: the second net, behind the one at the door (`door.ts`). What later nodes read again
 * (`lines`, `body`, `stream`) keeps its handles; what is shown or kept for good has none.
 */
export interface Redactor {
  /** A short text that is shown: a header, an address, a name. */
  text(text: string): string;
  /** A message for the log or the operator: also where letters lost their case, as in a host name. */
  message(text: string): string;
  /** A short JSON value that is shown, as text. Its strings, keys and numbers are looked at one by one: what is stored stays JSON. */
  json(value: Json): string;
  /** A whole body that a target gave: JSON stays JSON, also where the secret is a number in it. Other work goes on meanwhile. */
  body(text: string): Promise<string>;
  /** Records as newline-delimited JSON, in UTF-8. Other work goes on meanwhile. */
  lines(records: readonly DataRecord[]): Promise<Buffer>;
  /** The same for records that are shown. */
  readonly shown: Pick<Redactor, "lines">;
  /** Bytes of any kind, as they come. Other work goes on meanwhile. */
  stream(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Looks for these too from now on: what the run was given while it ran. */
  add(secrets: readonly RunSecret[]): void;
  /** The same for values that replace each other, as the cookies of an idle session do: of many the newest count. */
  addPassing(values: readonly string[]): void;
  /** There is nothing to look for. */
  readonly isIdle: boolean;
  /** How many texts were changed so far, here and at the door. */
  readonly changes: number;
}

/** docs/decisions/0014. `names` are words that the Blueprint's document holds: a key of JSON that is one of them stays. */
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
    shown: { lines: async (records) => bytesWithoutHandles(await lines(records)) },
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

/** Handles are ASCII, and so is what stands in their place: the other bytes stay as they are. */
export function bytesWithoutHandles(bytes: Buffer): Buffer {
  return bytes.includes(HANDLE_PREFIX, 0, "latin1")
    ? Buffer.from(withoutHandles(bytes.toString("latin1")), "latin1")
    : bytes;
}
