// Calendars and address books: what is in a record, and what a broken or hostile one ends in.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "#domain/json.ts";
import { node as parseType } from "#nodes/types/parse.ts";
import { check, dataOf, fileValue, runNode, textFlow } from "./node-context.ts";

const parse = async (config: JsonObject, text: string): Promise<Json[]> =>
  await dataOf((await runNode({ type: "parse", from: "x", ...config }, { from: [textFlow(text)] })).flow);
const fails = async (config: JsonObject, text: string, message: string): Promise<void> =>
  await assert.rejects(parse(config, text), { name: "NodeFailure", message });

const CALENDAR = { format: "icalendar" };
const CARDS = { format: "vcard" };
const calendar = (...lines: readonly string[]): string =>
  ["BEGIN:VCALENDAR", "VERSION:2.0", ...lines, "END:VCALENDAR", ""].join("\r\n");
const event = (...lines: readonly string[]): readonly string[] => ["BEGIN:VEVENT", ...lines, "END:VEVENT"];

const FULL = calendar(
  "BEGIN:VTIMEZONE",
  "TZID:Europe/Berlin",
  "END:VTIMEZONE",
  ...event(
    "UID:1",
    "SUMMARY;LANGUAGE=de:Über\\, uns\\nzwei fo",
    " lded",
    "DTSTART;TZID=Europe/Berlin:20261123T100000",
    "DTEND:20261123T110000Z",
    "RRULE:FREQ=WEEKLY;COUNT=3;BYDAY=MO",
    "EXDATE;VALUE=DATE:20261124,20261125",
    "CATEGORIES:work",
    'ATTENDEE;CN="Doe, J":mailto:a@b.example',
    "LAST-MODIFIED:20261101T000000Z",
    "X-OWN:a",
    "BEGIN:VALARM",
    "TRIGGER:-PT15M",
    "END:VALARM",
  ),
  "BEGIN:VTODO",
  "UID:2",
  "END:VTODO",
);

test("icalendar: a record for each entry, with its properties, their parameters and its components", async () => {
  assert.deepEqual(await parse(CALENDAR, FULL), [
    {
      uid: "1",
      summary: "Über, uns\nzwei folded",
      dtstart: "2026-11-23T10:00:00",
      dtend: "2026-11-23T11:00:00Z",
      rrule: { freq: "WEEKLY", count: 3, byday: ["MO"] },
      exdate: ["2026-11-24", "2026-11-25"],
      categories: ["work"],
      attendee: ["mailto:a@b.example"],
      last_modified: "2026-11-01T00:00:00Z",
      x_own: "a",
      parameters: {
        summary: { language: "de" },
        dtstart: { tzid: "Europe/Berlin" },
        attendee: [{ cn: "Doe, J" }],
      },
      components: [{ trigger: "-PT15M", component: "VALARM" }],
      component: "VEVENT",
    },
    { uid: "2", component: "VTODO" },
  ]);
  assert.deepEqual(await parse({ ...CALENDAR, component: "VTODO" }, FULL), [
    { uid: "2", component: "VTODO" },
  ]);
  assert.deepEqual(await parse(CALENDAR, calendar()), []);
  assert.deepEqual(
    await parse({ ...CALENDAR, component: "VEVENT" }, `${FULL}${calendar(...event("UID:3"))}`).then(
      (all) => all.length,
    ),
    2,
  );
});

test("vcard: a record for each card of 3.0 and 4.0; what may be repeated is a list, also once", async () => {
  const cards = [
    ...[
      "BEGIN:VCARD",
      "VERSION:3.0",
      "FN:Jane Doe",
      "N:Doe;Jane;;Dr.,Prof.;",
      "TEL;TYPE=home:+1",
      "item1.EMAIL:j@x.example",
    ],
    ...["ADR:;;Str 1,2nd;City;;123;DE", "ORG:Acme", "NOTE:a\\nb", "END:VCARD"],
    ...[
      "BEGIN:VCARD",
      "VERSION:4.0",
      "FN:Two",
      "BDAY:--0102",
      "TEL;VALUE=uri:tel:+1",
      "TEL:+2",
      "END:VCARD",
      "",
    ],
  ].join("\r\n");
  assert.deepEqual(await parse(CARDS, cards), [
    {
      version: "3.0",
      fn: "Jane Doe",
      n: ["Doe", "Jane", "", ["Dr.", "Prof."], ""],
      tel: ["+1"],
      email: ["j@x.example"],
      adr: [["", "", ["Str 1", "2nd"], "City", "", "123", "DE"]],
      org: [["Acme"]],
      note: ["a\nb"],
      parameters: { tel: [{ type: "home" }], email: [{ group: "item1" }] },
    },
    { version: "4.0", fn: "Two", bday: "--01-02", tel: ["tel:+1", "+2"] },
  ]);
  assert.deepEqual(await parse(CARDS, ""), []);
});

test("what is no calendar, or a broken one, fails with the line and without the data", async () => {
  await fails(CALENDAR, "", "The value: the iCalendar has no VCALENDAR.");
  await fails(CALENDAR, "<html>secret", "The value: the iCalendar is invalid in line 1: it has no `:`.");
  await fails(
    CALENDAR,
    calendar(...event("UID:1", "X:a", " b", "secret")),
    "The value: the iCalendar is invalid in line 7: it has no `:`.",
  );
  await fails(
    CALENDAR,
    calendar(...event("RRULE:FREQ=SECRET")),
    "The value: the iCalendar is invalid in line 4: the property does not allow this value.",
  );
  await fails(
    CALENDAR,
    calendar(...event("DTSTART:secret")),
    "The value: the iCalendar has a DTSTART that is not a date or time.",
  );
  await fails(
    CALENDAR,
    FULL.replace("END:VCALENDAR\r\n", ""),
    "The value: the iCalendar ends inside an open component.",
  );
  await fails(CARDS, FULL, "The value: the vCard has components other than VCARD.");
  await fails(CALENDAR, "BEGIN:VCARD\nFN:a\nEND:VCARD", "The value: the iCalendar has no VCALENDAR.");
  await fails(
    CALENDAR,
    `${"BEGIN:VCALENDAR\n".repeat(200)}${"END:VCALENDAR\n".repeat(200)}`
      .replace("BEGIN:VCALENDAR", "BEGIN:VCALENDAR\nBEGIN:VEVENT")
      .concat("END:VEVENT\n"),
    "The value: the iCalendar is nested too deeply.",
  );
});

test("a hostile calendar: names of objects are fields, and its size and its bytes have limits", async () => {
  const [record] = await parse(
    CALENDAR,
    calendar(...event("__PROTO__;CONSTRUCTOR=x;__PROTO__=y:a", "COMPONENT:b", "PARAMETERS:c")),
  );
  const data = record as JsonObject;
  assert.deepEqual(Object.keys(data).sort(), ["__proto__", "component", "parameters"]);
  assert.equal(data["component"], "VEVENT");
  assert.equal(Object.getPrototypeOf(data), Object.prototype);
  await fails(
    CALENDAR,
    calendar(...event(`X:${"a".repeat(50_000_000)}`)),
    "The value: the iCalendar has more than 50000000 characters.",
  );
  const latin = fileValue(Buffer.from(calendar(...event("SUMMARY:\xe4")), "latin1"), "text/calendar", 65_536);
  const read = async (config: JsonObject): Promise<Json[]> =>
    await dataOf(
      (
        await runNode(
          { type: "parse", from: "x", ...CALENDAR, ...config },
          { from: [{ kind: "value", value: latin }] },
        )
      ).flow,
    );
  await assert.rejects(read({}), /The file is not utf-8 text/);
  assert.deepEqual(await read({ charset: "latin1" }), [{ summary: "ä", component: "VEVENT" }]);
});

test("a secret that a calendar folds into two lines is cleaned in the record", () => {
  for (const format of ["icalendar", "vcard"]) assert.equal(parseType.unpacks?.({ format }), true, format);
  assert.match(
    check({ type: "parse", from: "x", ...CARDS, component: "VEVENT" })[0]?.message ?? "",
    /`component` is not a key of the format vcard/,
  );
});
