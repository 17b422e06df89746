// docs/schedules.md#times: which instants a schedule's times are, also when the clocks change.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readCron } from "#lib/cron.ts";

function list(cron: string, zone: string, from: string, count: number): readonly string[] {
  const read = readCron(cron, zone);
  assert.ok("times" in read, JSON.stringify(read));
  const found: string[] = [];
  let at: number | null = Date.parse(from);
  for (let n = 0; n < count; n++) {
    at = read.times.next(at);
    if (at === null) break;
    found.push(new Date(at).toISOString().slice(5, 16));
  }
  return found;
}

const TIMES: readonly (readonly [
  what: string,
  cron: string,
  zone: string,
  from: string,
  readonly string[],
])[] = [
  // The clocks go from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October.
  [
    "a skipped time is the change",
    "30 2 * * *",
    "Europe/Berlin",
    "2026-03-28T00:00Z",
    ["03-28T01:30", "03-29T01:00", "03-30T00:30"],
  ],
  [
    "two skipped times are one",
    "15,45 2 * * *",
    "Europe/Berlin",
    "2026-03-28T12:00Z",
    ["03-29T01:00", "03-30T00:15"],
  ],
  [
    "a skipped time beside others",
    "0 2,3,14 * * *",
    "Europe/Berlin",
    "2026-03-28T14:00Z",
    ["03-29T01:00", "03-29T12:00", "03-30T00:00"],
  ],
  [
    "a repeated time is the first",
    "30 2 * * *",
    "Europe/Berlin",
    "2026-10-24T12:00Z",
    ["10-25T00:30", "10-26T01:30"],
  ],
  [
    "repeated times in order",
    "30 1,2,3 * * *",
    "Europe/Berlin",
    "2026-10-24T22:00Z",
    ["10-24T23:30", "10-25T00:30", "10-25T02:30", "10-26T00:30"],
  ],
  [
    "every hour skips nothing",
    "0 * * * *",
    "Europe/Berlin",
    "2026-03-28T23:30Z",
    ["03-29T00:00", "03-29T01:00", "03-29T02:00"],
  ],
  [
    "every hour repeats nothing less",
    "30 * * * *",
    "Europe/Berlin",
    "2026-10-24T23:00Z",
    ["10-24T23:30", "10-25T00:30", "10-25T01:30", "10-25T02:30"],
  ],
  [
    "every second hour by the clock",
    "30 */2 * * *",
    "Europe/Berlin",
    "2026-10-24T22:00Z",
    ["10-24T22:30", "10-25T00:30", "10-25T01:30", "10-25T03:30"],
  ],
  [
    "every second hour, one of them skipped",
    "30 */2 * * *",
    "Europe/Berlin",
    "2026-03-28T23:00Z",
    ["03-28T23:30", "03-29T02:30"],
  ],
  // 8 March and 1 November, at 02:00.
  [
    "the other hemisphere of the Atlantic",
    "30 2 * * *",
    "America/New_York",
    "2026-03-08T00:00Z",
    ["03-08T07:00", "03-09T06:30"],
  ],
  ["and back", "30 1 * * *", "America/New_York", "2026-10-31T12:00Z", ["11-01T05:30", "11-02T06:30"]],
  // By half an hour: 4 October from 02:00 to 02:30, 5 April back.
  ["half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", ["10-03T15:30", "10-04T15:15"]],
  [
    "half an hour back",
    "45 1 * * *",
    "Australia/Lord_Howe",
    "2026-04-04T00:00Z",
    ["04-04T14:45", "04-05T15:15"],
  ],
  [
    "half an hour back, every quarter",
    "*/15 * * * *",
    "Australia/Lord_Howe",
    "2026-04-04T14:30Z",
    ["04-04T14:45", "04-04T15:00", "04-04T15:15"],
  ],
  [
    "days of the month or of the week",
    "0 0 1 * MON",
    "UTC",
    "2026-11-24T00:00Z",
    ["11-30T00:00", "12-01T00:00", "12-07T00:00"],
  ],
  [
    "a leap day, every hour of it",
    "0 */12 29 2 *",
    "UTC",
    "2026-01-01T00:00Z",
    ["02-29T00:00", "02-29T12:00"],
  ],
];

for (const [what, cron, zone, from, expected] of TIMES)
  test(`${what}: ${cron} in ${zone}`, () => {
    assert.deepEqual(list(cron, zone, from, expected.length), expected);
  });

test("what is no schedule is refused with a sentence", () => {
  const refused = (cron: string, zone = "UTC") => {
    const read = readCron(cron, zone);
    assert.ok("problem" in read, cron);
    assert.match(read.problem, /^[a-z].*\.$/);
    return read.wrong;
  };
  for (const cron of ["", "* * * *", "0 0 * * * *", "@daily", "61 * * * *", "0 0 31 2 *", "a b c d e"])
    assert.equal(refused(cron), "cron", cron);
  for (const zone of ["", "Mars/Olympus", "+01:00", "Europe/Berlin "])
    assert.equal(refused("0 0 * * *", zone), "time_zone", zone);
});

test("in each of three zones every local day of a year has its one time, and every hour around a change its own", () => {
  const changes = {
    "Europe/Berlin": ["03-29", "10-25"],
    "America/New_York": ["03-08", "11-01"],
    "Australia/Lord_Howe": ["04-05", "10-04"],
  };
  for (const [zone, dates] of Object.entries(changes)) {
    const daily = readCron("30 2 * * *", zone);
    const hourly = readCron("0 * * * *", zone);
    assert.ok("times" in daily && "times" in hourly);
    const day = new Intl.DateTimeFormat("en-CA", { timeZone: zone });
    const from = Date.UTC(2026, 0, 1, 12);
    const to = from + 366 * 86_400_000;
    const days: string[] = [];
    for (let at = daily.times.next(from); at !== null && at < to; at = daily.times.next(at))
      days.push(day.format(at));
    assert.equal(days.length, 366, zone);
    assert.equal(new Set(days).size, 366, zone);
    for (const date of dates) {
      const around = Date.parse(`2026-${date}T00:00Z`);
      const hours: number[] = [];
      for (
        let at = hourly.times.next(around - 86_400_000);
        hours.length < 48;
        at = hourly.times.next(hours.at(-1) ?? 0)
      )
        hours.push(at ?? 0);
      const apart = hours.slice(1).map((at, n) => (at - (hours[n] ?? 0)) / 60_000);
      // Whole hours of the clock are whole hours apart, but where the clocks change by half of one.
      const odd = apart.filter((minutes) => minutes !== 60);
      assert.deepEqual(odd, zone.startsWith("Australia") ? [90] : [], `${zone} ${date}`);
    }
  }
});
