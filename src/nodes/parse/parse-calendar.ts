import ICAL from "ical.js";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { REPLY_CHARACTERS_MAX, type CalendarJob, type ParseReply } from "./parse-jobs.ts";

/** The structure of RFC 7265 and RFC 7095: name, properties and (in calendars) components. */
type Component = readonly [name: string, properties: readonly Property[], components?: readonly Component[]];
type Property = readonly [name: string, parameters: JsonObject, type: string, ...values: readonly Json[]];

/** The components that become records, unless the document names one. */
const ENTRIES: ReadonlySet<string> = new Set(["vevent", "vtodo", "vjournal", "vfreebusy"]);

/** Properties that may occur several times, so that their field is always a list. */
const LISTS: Readonly<Record<CalendarJob["format"], ReadonlySet<string>>> = {
  icalendar: new Set(
    "attach attendee categories comment conference contact exdate freebusy image rdate related-to request-status resources".split(
      " ",
    ),
  ),
  vcard: new Set(
    "adr caladruri caluri categories email fburl geo impp key lang logo member nickname note org photo related role sound source tel title tz url".split(
      " ",
    ),
  ),
};
/** Properties whose value has parts: always a list, even with a single part. */
const PARTED: ReadonlySet<string> = new Set(["adr", "n", "org"]);

const DEPTH_MAX = 50;
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ?)?$/;

const isTime = (value: Json): boolean => typeof value === "string" && TIME.test(value);

class Wrong extends Error {
  override readonly name = "Wrong";
}

/** The entries of a calendar, or the cards of an address book. Only the parse thread may call it. */
export function parseCalendar(job: CalendarJob): ParseReply {
  if (job.text.length > REPLY_CHARACTERS_MAX)
    return { problem: `has more than ${REPLY_CHARACTERS_MAX} characters` };
  try {
    const entries = job.format === "vcard" ? cardsOf(job.text) : entriesOf(job);
    return { names: [], rows: [], records: entries.map((entry) => recordOf(entry, job.format, 1)) };
  } catch (error) {
    if (error instanceof Wrong) return { problem: error.message };
    if (error instanceof RangeError) throw error;
    return { problem: explain(job.text) };
  }
}

function entriesOf({ text, component }: CalendarJob): readonly Component[] {
  const calendars = rootsOf(text).filter(([name]) => name === "vcalendar");
  if (calendars.length === 0) throw new Wrong("has no VCALENDAR");
  const wanted = component?.toLowerCase();
  return calendars
    .flatMap(([, , components = []]) => components)
    .filter(([name]) => (wanted === undefined ? ENTRIES.has(name) : name === wanted));
}

/** An address book without cards is an empty string. */
function cardsOf(text: string): readonly Component[] {
  const roots = rootsOf(text);
  const cards = roots.filter(([name]) => name === "vcard");
  if (cards.length < roots.length || (roots.length === 0 && text.trim() !== ""))
    throw new Wrong("has components other than VCARD");
  return cards;
}

/** The library returns a single component by itself, several as a list. */
function rootsOf(text: string): readonly Component[] {
  const parsed = ICAL.parse(text) as unknown as Component | readonly Component[];
  return typeof parsed[0] === "string" ? [parsed as Component] : (parsed as readonly Component[]);
}

function recordOf(
  [name, properties, components = []]: Component,
  format: CalendarJob["format"],
  depth: number,
): JsonObject {
  if (depth > DEPTH_MAX) throw new Wrong("is nested too deeply");
  const values = new Map<string, Json[]>();
  const parameters = new Map<string, JsonObject[]>();
  for (const [property, given, type, ...each] of properties)
    for (const value of each) {
      listAt(values, property).push(valueOf(property, type, value, format));
      listAt(parameters, property).push(given);
    }
  const shaped = <Each extends Json>(property: string, list: readonly Each[]): Json =>
    LISTS[format].has(property) || list.length > 1 ? list : (list[0] ?? null);
  const described = [...parameters].filter(([, list]) => list.some((each) => Object.keys(each).length > 0));
  return Object.fromEntries([
    ...[...values].map(([property, list]) => [fieldOf(property), shaped(property, list)] as const),
    ...(described.length === 0
      ? []
      : [
          [
            "parameters",
            Object.fromEntries(
              described.map(([property, list]) => [fieldOf(property), shaped(property, list)]),
            ),
          ] as const,
        ]),
    ...(components.length === 0
      ? []
      : [["components", components.map((each) => recordOf(each, format, depth + 1))] as const]),
    ...(format === "icalendar" ? [["component", name.toUpperCase()] as const] : []),
  ]);
}

function listAt<Item>(lists: Map<string, Item[]>, name: string): Item[] {
  const list = lists.get(name) ?? [];
  lists.set(name, list);
  return list;
}

/** Then an expression can name it without quotes. */
const fieldOf = (property: string): string => property.replaceAll("-", "_");

function valueOf(property: string, type: string, value: Json, format: CalendarJob["format"]): Json {
  if (format === "icalendar" && (type === "date" || type === "date-time") && !isTime(value))
    throw new Wrong(`has a ${property.slice(0, 40).toUpperCase()} that is not a date or time`);
  if (type === "recur" && isJsonObject(value)) return recurrenceOf(value);
  if (PARTED.has(property) && !Array.isArray(value)) return [value];
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}

/** `byday` and similar parts are always lists. */
function recurrenceOf(rule: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(rule).map(([part, value]) => [
      part,
      part.startsWith("by") && !Array.isArray(value) ? [value] : value,
    ]),
  );
}

/** The library's own messages quote the text. */
function explain(text: string): string {
  for (const [number, line] of unfolded(text)) {
    if (line.trim() === "" || /^(?:BEGIN|END):/i.test(line)) continue;
    if (!/[:;]/.test(line)) return `is invalid in line ${number}: it has no \`:\``;
    try {
      ICAL.parse.property(line);
    } catch {
      return `is invalid in line ${number}: the property does not allow this value`;
    }
  }
  return "ends inside an open component";
}

/** RFC 5545, 3.1: a line that begins with a space continues the previous one. Returns each with the number of its first line. */
function unfolded(text: string): readonly (readonly [number: number, line: string])[] {
  const lines: [number, string][] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const last = lines.at(-1);
    if (last !== undefined && /^[ \t]/.test(line)) last[1] += line.slice(1);
    else lines.push([index + 1, line]);
  }
  return lines;
}
