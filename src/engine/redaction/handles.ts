import {
  HANDLE_CHARACTERS,
  HANDLE_PREFIX,
  HANDLE_SCOPE_DIGITS,
  HANDLE_VALUE_DIGITS,
} from "#domain/handle-text.ts";
import { passingValues } from "./run-secrets.ts";

/** A keyed hash of texts: 64 hexadecimal digits. */
export type HandleMac = (parts: readonly string[]) => string;

/** The owner of the values: handles are only valid for their run and credential. */
export interface HandleOwner {
  readonly runId: string;
  readonly credentialId: string;
}

/** The value of a handle; a JSON number is restored as a number. */
export interface HandleValue {
  readonly text: string;
  readonly isNumber: boolean;
}

/**
 * The values that the target of one credential gave. A handle is a keyed hash of run, credential, origin and value, so that a process
 * that continues the run after a crash derives the same handles from the same session, and none has to be stored. The origin is the
 * one whose response had the value: sending it back there reveals nothing.
 */
export interface Handles {
  /** Adds a login's values. `never`: values that get no handle, because the target has them from the end user. */
  add(values: readonly string[], never: readonly string[]): void;
  /** Adds later cookies; if there are many, the newest count. */
  addPassing(values: readonly string[]): void;
  /** The handle for a match in a response of this origin; null: it is not a value in any usual spelling. */
  find(found: string, isNumber: boolean, origin: string): string | null;
  /**
   * The value to send to this origin in place of a handle. `foreign`: it belongs to another run, credential or origin. `replaced`: it
   * belongs to this one, but its session has been replaced.
   */
  read(handle: string, origin: string): HandleValue | "foreign" | "replaced";
}

const LOOKED_MAX = 1_000;

export function openHandles(mac: HandleMac, owner: HandleOwner): Handles {
  const lasting: string[] = [];
  const never = new Set<string>();
  const passing = passingValues();
  // All values that a handle may have.
  let texts = new Set<string>();
  const { make, made, scopeOf } = handleMaker(mac, owner);
  let complete = new Set<string>();
  // A tenant's id may occur in every record.
  const looked = new Map<string, string | null>();

  const collect = (values: readonly string[]): void => {
    complete = new Set();
    looked.clear();
    for (const value of values)
      if (!never.has(value)) for (const text of spellingsOf(value)) if (!never.has(text)) texts.add(text);
  };
  /** After a crash, the journal's handles come from another process. */
  const makeAll = (origin: string): void => {
    if (complete.has(origin)) return;
    complete.add(origin);
    for (const text of texts) {
      make({ text, isNumber: false }, origin);
      if (isNumeral(text)) make({ text, isNumber: true }, origin);
    }
  };
  return {
    add(values, given) {
      for (const value of given) never.add(value);
      lasting.push(...values);
      collect(values);
    },
    addPassing(values) {
      const { added, forgot } = passing.add(values);
      if (forgot) {
        texts = new Set();
        made.clear();
      }
      collect(forgot ? [...lasting, ...passing.values] : added);
    },
    find(found, isNumber, origin) {
      const place = `${origin} ${isNumber} ${found}`;
      const known = looked.get(place);
      if (known !== undefined) return known;
      if (looked.size >= LOOKED_MAX) looked.clear();
      const text = readingsOf(found).find((reading) => texts.has(reading));
      const handle =
        text === undefined ? null : make({ text, isNumber: isNumber && isNumeral(text) }, origin);
      looked.set(place, handle);
      return handle;
    },
    read(handle, origin) {
      const scope = handle.slice(HANDLE_PREFIX.length, HANDLE_PREFIX.length + HANDLE_SCOPE_DIGITS);
      if (handle.length !== HANDLE_CHARACTERS || scope !== scopeOf(origin)) return "foreign";
      if (!made.has(handle)) makeAll(origin);
      return made.get(handle) ?? "replaced";
    },
  };
}

interface HandleMaker {
  readonly make: (value: HandleValue, origin: string) => string;
  /** By handle. */
  readonly made: Map<string, HandleValue>;
  /** The digits that identify the owner. */
  readonly scopeOf: (origin: string) => string;
}

function handleMaker(mac: HandleMac, { runId, credentialId }: HandleOwner): HandleMaker {
  const made = new Map<string, HandleValue>();
  const scopes = new Map<string, string>();
  const scopeOf = (origin: string): string => {
    const known = scopes.get(origin);
    if (known !== undefined) return known;
    const scope = mac(["scope", runId, credentialId, origin]).slice(0, HANDLE_SCOPE_DIGITS);
    scopes.set(origin, scope);
    return scope;
  };
  return {
    made,
    scopeOf,
    make: (value, origin) => {
      const kind = value.isNumber ? "number" : "text";
      const digits = mac([kind, runId, credentialId, origin, value.text]).slice(0, HANDLE_VALUE_DIGITS);
      const handle = `${HANDLE_PREFIX}${scopeOf(origin)}${digits}`;
      made.set(handle, value);
      return handle;
    },
  };
}

const isNumeral = (text: string): boolean => /^-?(?:0|[1-9]\d*)$/.test(text);

/** A value unchanged, as a decoded cookie, and as in a link. */
function spellingsOf(value: string): readonly string[] {
  const meant = unescapePercent(value);
  return [
    ...new Set([value, meant, ...[value, meant].map((text) => encodeURIComponent(text.toWellFormed()))]),
  ];
}

/** Possible meanings of a string: unchanged, in JSON or a script, in HTML, and with other percent-encodings. */
function readingsOf(found: string): readonly string[] {
  const unescaped = unescapeJson(found);
  const readings = [found, unescaped, unescapeHtml(found), unescapeHtml(unescaped)];
  return [
    ...readings,
    ...readings.flatMap((text) => {
      if (!/[%+]/.test(text)) return [];
      return [unescapePercent(text), unescapePercent(text.replaceAll("+", " "))].map((meant) =>
        encodeURIComponent(meant.toWellFormed()),
      );
    }),
  ];
}

function unescapePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function unescapeJson(text: string): string {
  if (!text.includes("\\")) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text;
  }
}

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescapeHtml(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));/g,
    (all, decimal, hex, name) => {
      if (name !== undefined) return NAMED[String(name)] ?? String(all);
      const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
      return code <= 0x10_ffff ? String.fromCodePoint(code) : String(all);
    },
  );
}
