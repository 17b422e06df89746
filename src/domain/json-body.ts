import { writeJsonText, type JsonTree } from "#lib/json-text.ts";
import type { BodyValue, TriggerBody } from "./trigger-routing.ts";

/** A JSON body as a trigger's. */
export const toTriggerBody = (body: ReadonlyMap<string, JsonTree>): TriggerBody =>
  new Map([...body].map(([key, value]) => [key, toBodyValue(value)]));

function toBodyValue(value: JsonTree): BodyValue {
  if (typeof value === "string") return { kind: "string", text: value };
  const items =
    Array.isArray(value) && value.every((item) => typeof item === "string") ? (value as string[]) : null;
  return { kind: "json", text: writeJsonText(value), isNull: value === null, items };
}
