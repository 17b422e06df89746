import { Cron } from "croner";

/**
 * The times of a schedule in a time zone (docs/schedules.md#times). The library only says which times of day match: which instants these are
 * when the clocks change is decided here, by one rule.
 */
export interface CronTimes {
  /** The first time after this instant, both in milliseconds since 1970; null: there is none any more. */
  readonly next: (afterMs: number) => number | null;
}

/** A time and the next ones, `count` of them at most. */
export function timesFrom({ next }: CronTimes, first: Date, count: number): readonly Date[] {
  const times = [first];
  for (let atMs = next(first.getTime()); atMs !== null && times.length < count; atMs = next(atMs))
    times.push(new Date(atMs));
  return times;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** More than the clocks of any zone change at once. */
const CHANGE_MS_MAX = 3 * HOUR_MS;
const FIELDS = ["minute", "hour", "day of the month", "month", "day of the week"];

/** Reads an expression of five fields and an IANA time zone; a problem is a sentence without a subject. */
export function readCron(
  expression: string,
  timeZone: string,
): { readonly times: CronTimes } | { readonly wrong: "cron" | "time_zone"; readonly problem: string } {
  const offsetAt = openZone(timeZone);
  if (offsetAt === null)
    return { wrong: "time_zone", problem: "must be the name of a time zone, such as Europe/Berlin or UTC." };
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== FIELDS.length)
    return { wrong: "cron", problem: `must have five fields: ${FIELDS.join(", ")}.` };
  const clock = readFields(fields.join(" "));
  if (typeof clock === "string") return { wrong: "cron", problem: clock };
  // As in Vixie cron: hours that begin with `*` mean "every so often", others a time of day.
  const isRepeated = fields[1]?.startsWith("*") === true;
  const times = {
    next: (afterMs: number) =>
      isRepeated ? nextOften(clock, offsetAt, afterMs) : nextOfDay(clock, offsetAt, afterMs),
  };
  if (times.next(0) === null) return { wrong: "cron", problem: "never comes: no day has this date." };
  return { times };
}

/** The first matching time of day after another one: both as milliseconds, as if the zone were UTC. */
type WallClock = (afterMs: number) => number | null;
type OffsetAt = (atMs: number) => number;

function readFields(expression: string): WallClock | string {
  try {
    const cron = new Cron(expression, { timezone: "UTC", paused: true });
    return (afterMs) => cron.nextRun(new Date(afterMs))?.getTime() ?? null;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : "";
    return `is no cron expression: ${reason}${reason.endsWith(".") ? "" : "."}`;
  }
}

/** By how much the zone's clocks are ahead of UTC; null: there is no such zone. */
function openZone(timeZone: string): OffsetAt | null {
  // Intl also takes offsets such as +01:00, which have no rules.
  if (!/^[A-Za-z]/.test(timeZone)) return null;
  try {
    const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
    return (atMs) => {
      const [, sign, hours, minutes, seconds = "0"] =
        /GMT([+-])(\d+):(\d+)(?::(\d+))?$/.exec(format.format(atMs)) ?? [];
      if (sign === undefined) return 0;
      const size = Number(hours) * HOUR_MS + Number(minutes) * 60_000 + Number(seconds) * 1_000;
      return sign === "-" ? -size : size;
    };
  } catch {
    return null;
  }
}

/** A time of day that the clocks skip is their change; of one that they show twice it is the first. */
function nextOfDay(clock: WallClock, offsetAt: OffsetAt, afterMs: number): number | null {
  let wall = clock(afterMs + offsetAt(afterMs) - CHANGE_MS_MAX);
  while (wall !== null) {
    const atMs = firstInstant(offsetAt, wall);
    if (atMs > afterMs) return atMs;
    wall = clock(wall);
  }
  return null;
}

function firstInstant(offsetAt: OffsetAt, wall: number): number {
  const before = offsetAt(wall - DAY_MS);
  const later = offsetAt(wall + DAY_MS);
  // The larger offset gives the earlier instant.
  for (const offset of [Math.max(before, later), Math.min(before, later)])
    if (offsetAt(wall - offset) === offset) return wall - offset;
  return changeBetween(offsetAt, wall - DAY_MS, wall + DAY_MS);
}

/** Every instant at which the clocks show a matching time: in the hour that they show twice, both. */
function nextOften(clock: WallClock, offsetAt: OffsetAt, afterMs: number): number | null {
  let fromMs = afterMs;
  for (;;) {
    const offset = offsetAt(fromMs);
    const wall = clock(fromMs + offset);
    if (wall === null) return null;
    const atMs = wall - offset;
    if (atMs - fromMs > DAY_MS) {
      // Nothing matches on the way, whatever the clocks do there.
      fromMs = atMs - DAY_MS / 2;
      continue;
    }
    if (offsetAt(atMs) === offset) return atMs;
    // The clocks change before: from there on by the other offset, which may match at once.
    fromMs = changeBetween(offsetAt, fromMs, atMs) - 1;
    const changed = clock(fromMs + offsetAt(fromMs + 1));
    if (changed === null) return null;
    const changedMs = changed - offsetAt(fromMs + 1);
    if (changedMs - fromMs <= DAY_MS) return changedMs;
    fromMs += 1;
  }
}

/** The first instant with the other offset, between two that differ. */
function changeBetween(offsetAt: OffsetAt, fromMs: number, toMs: number): number {
  const offset = offsetAt(fromMs);
  let [low, high] = [fromMs, toMs];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle) === offset) low = middle;
    else high = middle;
  }
  return high;
}
