import {
  getSchedule as readSchedule,
  listSchedules,
  runScheduleAs,
} from "#actions/operators/manage-schedules.ts";
import { actorOf } from "#actions/operators/operator-caller.ts";
import { pauseScheduleById, resumeScheduleById } from "#actions/schedules/operate-schedules.ts";
import type * as contract from "#contract/operator/schedules.ts";
import type { Handler } from "./context.ts";

const idOf = (params: Readonly<Record<string, string>>): string => params["scheduleId"] ?? "";

export const getSchedules: Handler<typeof contract.listSchedules> = async ({ services, limit }, { query }) =>
  await listSchedules(services.db, query, limit);

export const getSchedule: Handler<typeof contract.readSchedule> = async ({ services }, { params }) =>
  await readSchedule(services.db, idOf(params));

export const postPause: Handler<typeof contract.pauseSchedule> = async ({ services, caller }, { params }) =>
  await pauseScheduleById(services, idOf(params), actorOf(caller));

export const postResume: Handler<typeof contract.resumeSchedule> = async ({ services, caller }, { params }) =>
  await resumeScheduleById(services, idOf(params), actorOf(caller));

export const postRun: Handler<typeof contract.runSchedule> = async ({ services, caller }, { params }) =>
  await runScheduleAs(services, caller, idOf(params));
