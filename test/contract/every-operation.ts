import type { ApiAnswer, Caller } from "../caller.ts";
import { BLUEPRINT, STRATEGY } from "./documents.ts";

/** A right trigger. */
export const TRIGGER = { purchase_order: "PO-7", period: { from: "2026-11-01" } };

/** Every operation once, as well as it can be asked for without anything that was made before. */
export async function everyOperation(as: Caller): Promise<readonly (readonly [string, ApiAnswer])[]> {
  return [
    ["createCredentialSession", await as.post("/credential-sessions", { strategy_id: STRATEGY })],
    ["readCredentialSession", await as.get("/credential-sessions/sess_0000000000000000000000000000")],
    ["deleteCredential", await as.delete("/credentials/cred_0000000000000000000000000000")],
    ["triggerBlueprint", await as.post(`/blueprints/${BLUEPRINT}/trigger`, TRIGGER)],
    [
      "triggerBlueprintBatch",
      await as.post(`/blueprints/${BLUEPRINT}/trigger-batch`, { triggers: [{ trigger: TRIGGER }] }),
    ],
    ["readRunStatus", await as.get("/blueprint-runs/run_0000000000000000000000000000/status")],
    ["readRunResults", await as.get("/blueprint-runs/run_0000000000000000000000000000/results")],
    [
      "createEmbeddedCredentialSession",
      await as.post("/embedded-credential-sessions", {
        origin: "https://app.example.com",
        blueprint_keys: [BLUEPRINT],
      }),
    ],
    [
      "readEmbeddedCredentialSession",
      await as.get("/embedded-credential-sessions/ecs_0000000000000000000000000000"),
    ],
    ["cancelRun", await as.post("/blueprint-runs/run_0000000000000000000000000000/cancel")],
    ["watchRun", await as.get("/blueprint-runs/run_0000000000000000000000000000/events")],
    [
      "putSchedule",
      await as.put("/schedules/s", {
        blueprint_key: BLUEPRINT,
        cron: "0 0 * * *",
        time_zone: "UTC",
        trigger: TRIGGER,
      }),
    ],
    ["readSchedule", await as.get("/schedules/nothing")],
    ["deleteSchedule", await as.delete("/schedules/nothing")],
    ["readTestClock", await as.get("/test-clock")],
    ["putTestClock", await as.put("/test-clock", { now: "2027-01-31T08:00:00.000Z" })],
    ["readTriggerSchema", await as.get("/blueprints/nothing/schema")],
    ["watchEvents", await as.peek("/events")],
  ];
}
