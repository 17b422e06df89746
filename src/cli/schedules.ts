import { Option, type Command } from "commander";
import type { OperatorAnswer } from "#contract/operator/operation.ts";
import type { listSchedules, readSchedule } from "#contract/operator/schedules.ts";
import { FIRE_OUTCOME_NAMES, scheduleStateName } from "#domain/labels/schedules.ts";
import { SCHEDULE_STATES, type ScheduleState } from "#domain/schedule.ts";
import type { Composition } from "./composition.ts";
import { plain, print, table } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { addPageOptions, minute, printMore, type PageOptions } from "./pages.ts";
import { onService } from "./remote.ts";

type ListedSchedule = OperatorAnswer<typeof listSchedules>["items"][number];
type ShownSchedule = OperatorAnswer<typeof readSchedule>;

interface ListOptions extends PageOptions {
  blueprint?: string;
  state?: ScheduleState;
}

/** Schedules: of Blueprints' documents, and those that the API made. */
export function addSchedules(program: Command, composition: Composition): void {
  const schedules = program
    .command("schedules")
    .description("list, pause and resume schedules, and begin a run of one now")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey schedules list --account acme --state paused\n  latchkey schedules show sched_0VrJ…",
    );
  addPageOptions(
    schedules
      .command("list")
      .description("list schedules, newest first")
      .option("--account <name>", "only those of one account")
      .option("--blueprint <key>", "only those of one Blueprint")
      .addOption(new Option("--state <state>", "only those in this state").choices([...SCHEDULE_STATES])),
  )
    .addHelpText("after", "\nExample:\n  latchkey schedules list --account acme --state paused")
    .action(async (options: ListOptions) => await list(composition, options));
  schedules
    .command("show")
    .description("show a schedule: its next times, its last runs, and why it is paused")
    .argument("<id>", "its id (sched_…)")
    .option("--json", "print it as JSON, as the operator API returns it")
    .addHelpText("after", "\nExample:\n  latchkey schedules show sched_0VrJ…")
    .action(
      async (id: string, options: { json?: boolean }) => await show(composition, id, options.json === true),
    );
  addSwitches(schedules, composition);
}

async function list(composition: Composition, { json, ...query }: ListOptions): Promise<void> {
  const found = await onService(composition, {
    here: async (db) => {
      const actions = await import("#actions/operators/manage-schedules.ts");
      return await actions.listSchedules(db, query, null);
    },
    remote: async (service) => {
      const contract = await import("#contract/operator/schedules.ts");
      return await service.call(contract.listSchedules, { query });
    },
  });
  if (json === true) return print(JSON.stringify(found));
  if (found.items.length === 0)
    return print("There are no matching schedules. Blueprints' documents and PUT /schedules/KEY make them.");
  print(
    table(
      ["ID", "ACCOUNT", "KEY", "BLUEPRINT", "TIMES", "NEXT", "STATE"],
      found.items.map((schedule) => [
        schedule.id,
        schedule.account,
        schedule.key,
        schedule.blueprint,
        timesOf(schedule),
        schedule.next_at === null ? "" : minute(schedule.next_at),
        scheduleStateName(schedule),
      ]),
    ),
  );
  printMore(found.next_cursor);
}

const timesOf = ({ cron, time_zone: zone }: ListedSchedule): string => plain(`${cron} ${zone}`);

async function show(composition: Composition, id: string, asJson: boolean): Promise<void> {
  const schedule = await onService(composition, {
    here: async (db) => {
      const actions = await import("#actions/operators/manage-schedules.ts");
      return await actions.getSchedule(db, id);
    },
    remote: async (service) => {
      const contract = await import("#contract/operator/schedules.ts");
      return await service.call(contract.readSchedule, { params: { scheduleId: id } });
    },
  });
  if (asJson) return print(JSON.stringify(schedule));
  const width = Math.max(...factsOf(schedule).map(([name]) => name.length));
  for (const [name, value] of factsOf(schedule)) print(`${name.padEnd(width)}  ${value}`);
  if (schedule.next.length > 0)
    print(`\nNext times:\n${schedule.next.map((at) => `  ${minute(at)}`).join("\n")}`);
  if (schedule.runs.length === 0) return print("\nIt has had no run yet.");
  print(
    `\n${table(
      ["RUN", "TIME", "BEGUN BY", "STATUS"],
      schedule.runs.map((run) => [
        run.id,
        minute(run.due_at),
        run.is_manual ? "an operator" : "the clock",
        run.status,
      ]),
    )}`,
  );
}

function factsOf(schedule: ShownSchedule): readonly (readonly [string, string])[] {
  const { last } = schedule;
  const facts: readonly (readonly [string, string | null])[] = [
    ["id", schedule.id],
    ["account", schedule.account],
    ["key", schedule.key],
    ["blueprint", schedule.blueprint],
    ["managed by", schedule.is_from_document ? "the Blueprint's document" : "the API"],
    ["times", timesOf(schedule)],
    ["missed", schedule.missed],
    ["overlap", schedule.overlap],
    ["jitter", schedule.jitter === "0" ? null : schedule.jitter],
    ["credentials", schedule.credentials.join(", ") || null],
    ["state", scheduleStateName(schedule)],
    ["paused since", schedule.paused_at && minute(schedule.paused_at)],
    ["because", schedule.paused_detail && plain(schedule.paused_detail)],
    ["locked until", schedule.locked_until && minute(schedule.locked_until)],
    ["last time", last && `${minute(last.due_at)}: ${FIRE_OUTCOME_NAMES[last.outcome]}`],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
}

function addSwitches(schedules: Command, composition: Composition): void {
  schedules
    .command("pause")
    .description("pause a schedule: its times have no runs until it is resumed")
    .argument("<id>", "its id (sched_…)")
    .addHelpText("after", "\nExample:\n  latchkey schedules pause sched_0VrJ…")
    .action(async (id: string) => {
      await change(composition, id, "pause");
      print(`Paused ${id}. Runs that it began continue.`);
    });
  schedules
    .command("resume")
    .description("resume a paused schedule; times that passed in the meantime have no run")
    .argument("<id>", "its id (sched_…)")
    .addHelpText("after", "\nExample:\n  latchkey schedules resume sched_0VrJ…")
    .action(async (id: string) => {
      await change(composition, id, "resume");
      print(`Resumed ${id}.`);
    });
  schedules
    .command("run")
    .description("begin a run of a schedule now, with its trigger; also while it is paused")
    .argument("<id>", "its id (sched_…)")
    .option("--json", "print {id, run_key} as JSON")
    .addHelpText("after", "\nExample:\n  latchkey schedules run sched_0VrJ…")
    .action(async (id: string, options: { json?: boolean }) => {
      const run = await runNow(composition, id);
      if (options.json === true) return print(JSON.stringify(run));
      print(`Began ${run.id}. Follow it with: latchkey runs watch ${run.id}`);
    });
}

async function change(composition: Composition, id: string, how: "pause" | "resume"): Promise<void> {
  await onService(composition, {
    here: async (db) => {
      const actions = await import("#actions/schedules/operate-schedules.ts");
      const services = { db, signing: openOwnSigning(composition) };
      await { pause: actions.pauseScheduleById, resume: actions.resumeScheduleById }[how](services, id);
    },
    remote: async (service) => {
      const { pauseSchedule: pause, resumeSchedule: resume } =
        await import("#contract/operator/schedules.ts");
      await service.call({ pause, resume }[how], { params: { scheduleId: id } });
    },
  });
}

async function runNow(
  composition: Composition,
  id: string,
): Promise<{ readonly id: string; readonly run_key: string }> {
  return await onService(composition, {
    here: async (db) => {
      const { runScheduleNow } = await import("#actions/schedules/operate-schedules.ts");
      const run = await runScheduleNow({ db, signing: openOwnSigning(composition) }, id);
      return { id: run.id, run_key: run.runKey };
    },
    remote: async (service) => {
      const { runSchedule } = await import("#contract/operator/schedules.ts");
      return await service.call(runSchedule, { params: { scheduleId: id } });
    },
  });
}
