import assert from "node:assert/strict";
import type { Caller } from "../caller.ts";
import type { OperatorStage, Someone } from "../operator/stage.ts";

const TERMS = { blueprint_key: "asks", cron: "0 0 1 1 *", time_zone: "UTC", trigger: { data: "[]" } };

/** The operations on schedules, with their entries and what they are asked about. */
export function scheduleEffects<Asked>(
  asAdmin: (params?: Readonly<Record<string, string>>, body?: object) => Promise<Asked>,
  by: () => { readonly stage: OperatorStage; readonly admin: Someone; readonly caller: Caller },
) {
  let made = 0;
  const newSchedule = async (): Promise<{ readonly scheduleId: string }> => {
    const key = `made-${made++}`;
    await by().caller.put(`/schedules/${key}`, TERMS);
    const [row] = await by().stage.db.query<{ id: string }>("select id from schedule where key = $1", [key]);
    return { scheduleId: row?.id ?? assert.fail(key) };
  };
  const onSchedule = (action: string) => ({
    actions: [action],
    ask: async () => await asAdmin({ ...(await newSchedule()) }),
  });
  return {
    pauseSchedule: onSchedule("schedule.pause"),
    resumeSchedule: {
      actions: ["schedule.resume"],
      ask: async () => {
        const { scheduleId } = await newSchedule();
        await (await by().stage.holding(by().admin)).send("POST", `/schedules/${scheduleId}/pause`);
        return await asAdmin({ scheduleId });
      },
    },
    runSchedule: onSchedule("schedule.run"),
  };
}
