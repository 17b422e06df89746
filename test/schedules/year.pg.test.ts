// docs/schedules.md: over a year, with its changes of the clocks and with workers that are lost, each time of each schedule has one end.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fireSchedules, type FiringServices } from "#actions/schedules/fire-schedules.ts";
import { putSchedule } from "#actions/schedules/put-schedule.ts";
import { findAccountBySlug } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import { MISSED_RULES, type MissedRule } from "#domain/schedule.ts";
import { spread } from "#domain/schedule-jitter.ts";
import { must } from "#lib/assert.ts";
import { signingOf } from "../invariants.ts";
import { install, type Installation } from "../service.ts";
import { tier } from "../tiers.ts";
import { endRuns, firingOf, stopClock } from "./stage.ts";

const SCHEDULES = Number(process.env["LATCHKEY_SCHEDULES"] ?? (tier === "fast" ? 30 : 10_000));
const ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];
const FROM = Date.UTC(2026, 0, 1);
const DAYS = 366;
const DAY_MS = 86_400_000;

let installation: Installation & AsyncDisposable;
before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme",
    'blueprint: open\naccount: acme\nnodes:\n  - { id: a, type: input, refKey: a, default: "[]" }\n  - { id: rows, type: parse, from: a, format: json }\n  - { id: out, type: output, refKey: out, from: rows }',
  );
});
after(async () => await installation?.[Symbol.asyncDispose]());

/** A number from 0 to `below`, from the seed 24 on. */
let state = 24;
function pick(below: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}

interface Planned {
  readonly key: string;
  readonly cron: string;
  readonly zone: string;
  readonly rule: MissedRule;
  readonly jitter: string;
  readonly hour: number;
  readonly minute: number;
  /** Whether its date is one of the schedule's. */
  readonly isOn: (date: Date) => boolean;
}

/** The months in which the clocks of the zones change. */
const CHANGES = [3, 4, 10, 11];

/** At hours that the changes touch and at others. Of very many, most have times only in the months of the changes. */
function plan(at: number): Planned {
  const [hour, minute] = [at % 3 === 0 ? 2 : at % 3 === 1 ? 1 : pick(24), pick(60)];
  const every = pick(SCHEDULES > 1_000 ? 200 : 20);
  const [day, weekday] = [1 + pick(31), pick(7)];
  const [fields, isOn]: [string, Planned["isOn"]] =
    every === 0
      ? ["* * *", () => true]
      : every < 5
        ? [`* * ${weekday}`, (date) => date.getUTCDay() === weekday]
        : every < 20
          ? [`${day} * *`, (date) => date.getUTCDate() === day]
          : [
              `${day} ${CHANGES.join()} *`,
              (date) => date.getUTCDate() === day && CHANGES.includes(date.getUTCMonth() + 1),
            ];
  const rule = must(MISSED_RULES[at % 3], "a rule");
  const zone = must(ZONES[pick(ZONES.length)], "a zone");
  const jitter = at % 2 === 0 ? "0" : "6h";
  return { key: `s${at}`, cron: `${minute} ${hour} ${fields}`, zone, rule, jitter, hour, minute, isOn };
}

const formats = new Map<string, Intl.DateTimeFormat>();
/** What the clocks of a zone show, as if it were UTC. */
function shown(zone: string, at: number): number {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      dateStyle: "short",
      timeStyle: "medium",
      hourCycle: "h23",
    });
  formats.set(zone, format);
  return Date.parse(`${format.format(at).replace(", ", "T")}Z`);
}

const instants = new Map<string, number>();
/** The instant of a time of day, found by looking at the clocks minute by minute. */
function instantOf(zone: string, wall: number): number {
  const name = `${zone} ${wall}`;
  const known = instants.get(name);
  if (known !== undefined) return known;
  // The first minute at which the clocks show it, or have jumped over it.
  const around = wall - (shown(zone, wall) - wall);
  let at = around - 61 * 60_000;
  while (shown(zone, at) < wall) at += 60_000;
  instants.set(name, at);
  return at;
}

/** All of its times between the two. */
function timesOf({ zone, hour, minute, isOn }: Planned, from: number, to: number): readonly number[] {
  const times = new Set<number>();
  for (let day = Math.floor(from / DAY_MS - 2) * DAY_MS; day < to + 2 * DAY_MS; day += DAY_MS) {
    if (!isOn(new Date(day))) continue;
    const at = instantOf(zone, day + hour * 3_600_000 + minute * 60_000);
    if (at > from && at <= to) times.add(at);
  }
  return [...times].toSorted((a, b) => a - b);
}

/** A database whose worker is lost now and then, before or after its commit. */
const losing = (db: Database): Database => ({
  ...db,
  transaction: async (work, options) => {
    const answer = await db.transaction(async (tx) => {
      const done = await work(tx);
      if (pick(40) === 0) throw new Error("lost before the commit");
      return done;
    }, options);
    if (pick(40) === 0) throw new Error("lost after the commit");
    return answer;
  },
});

/** Looks until nothing is due, with two workers of which either may be lost. */
async function settle(firing: FiringServices): Promise<void> {
  const lossy = { ...firing, db: losing(firing.db) };
  for (let looks = 0; looks < 20; looks++) {
    const looked = await Promise.all([fireSchedules(lossy), fireSchedules(lossy)]);
    if (looked.every((count) => count === 0)) return;
  }
  while ((await fireSchedules(firing)) > 0);
}

test(
  `${SCHEDULES} schedules over a year in three zones: each time has its one end by its rule`,
  { timeout: 3_600_000 },
  async () => {
    const { db } = installation.database;
    const signing = signingOf(installation);
    const account = must(await findAccountBySlug(db, "acme"), "the account");
    await installation.createKey("acme");
    const [key] = await db.query<{ id: string }>("select id from api_key");
    const caller = { account, keyId: must(key, "a key").id, blueprintKeys: null, scopes: null };
    await stopClock(installation, new Date(FROM).toISOString());
    const planned = Array.from({ length: SCHEDULES }, (_, at) => plan(at));
    for (const { key: name, cron, zone, rule, jitter } of planned)
      await putSchedule({ db, signing }, caller, name, {
        blueprintKey: "open",
        cron,
        timeZone: zone,
        missed: rule,
        overlap: "skip",
        jitter,
        trigger: new Map(),
      });
    // Mostly a day at a time; now and then all workers are away for a week or more.
    const looks: number[] = [];
    for (let at = FROM; at < FROM + DAYS * DAY_MS;) {
      at += pick(10) === 0 ? (5 + pick(20)) * DAY_MS : DAY_MS / 2 + pick(DAY_MS);
      looks.push(at);
      await stopClock(installation, new Date(at).toISOString());
      await settle(firingOf(installation));
      await endRuns(installation);
    }
    const rows = await db.query<{ key: string; dueMs: number; outcome: string; runs: number }>(
      `select key, (extract(epoch from due_at) * 1000)::float8 as "dueMs", outcome,
       (select count(*)::int from run where run.id = run_id) as runs
     from schedule_fire fire join schedule on schedule.id = fire.schedule_id order by due_at`,
    );
    const known = await db.query<{ key: string; id: string }>("select key, id from schedule");
    const ids = new Map(known.map(({ key: name, id }) => [name, id]));
    const noted = Map.groupBy(rows, ({ key: name }) => name);
    for (const each of planned) {
      const expected: string[] = [];
      const dues = timesOf(each, FROM, FROM + (DAYS + 60) * DAY_MS);
      const id = must(ids.get(each.key), "its id");
      const beginsAt = spread({ id, jitter: each.jitter }, (ms) => dues.find((due) => due > ms) ?? null);
      const all = dues.map((due) => ({ due, begins: beginsAt(due) }));
      let from = FROM;
      for (const at of looks) {
        const times = all.filter(({ begins }) => begins > from && begins <= at);
        for (const [index, { due, begins }] of times.entries()) {
          const isLast = index === times.length - 1;
          const isOnTime = at - begins <= limits.scheduleLateMs;
          const hasRun = each.rule === "all" || (isLast && (each.rule === "once" || isOnTime));
          expected.push(`${new Date(due).toISOString()} ${hasRun ? "run 1" : "missed 0"}`);
        }
        from = at;
      }
      assert.deepEqual(
        (noted.get(each.key) ?? []).map(
          ({ dueMs, outcome, runs }) => `${new Date(dueMs).toISOString()} ${outcome} ${runs}`,
        ),
        expected,
        `${each.key}: ${each.cron} in ${each.zone}, missed: ${each.rule}`,
      );
    }
    const [count] = await db.query<{ runs: number; fires: number }>(
      `select (select count(*)::int from run) as runs, (select count(*)::int from schedule_fire where outcome = 'run') as fires`,
    );
    assert.equal(count?.runs, count?.fires, "no run without its time");
    assert.ok((count?.runs ?? 0) > SCHEDULES);
  },
);
