import { shorten } from "#domain/config-problem.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import { FIELD_ROLES } from "./nearest-names.ts";

const LINES_MAX = 200;
const TEXT_CHARACTERS = 120;
const DEPTH_MAX = 12;

/** State that says nothing of what was typed. */
const STATES = ["level", "checked", "disabled", "expanded", "pressed"] as const;

/**
 * The driver's snapshot of a page as lines: role and name of each element, and texts. What is inside of a field is left out: it is the
 * field's value. `clean` removes secrets from a text, before it is shortened.
 */
export function outlineOf(snapshot: unknown, clean: (text: string) => string): string {
  const lines: string[] = [];
  const write = (depth: number, line: string): void => {
    if (lines.length === LINES_MAX) lines.push("…");
    if (lines.length < LINES_MAX) lines.push(`${"  ".repeat(Math.min(depth, DEPTH_MAX))}${line}`);
  };
  const quoted = (text: string): string =>
    JSON.stringify(shorten(clean(text.replaceAll(/\s+/g, " ").trim()), TEXT_CHARACTERS));
  const visit = (part: Json, depth: number): void => {
    if (lines.length > LINES_MAX) return;
    if (Array.isArray(part)) for (const each of part) visit(each as Json, depth);
    if (typeof part === "string") write(depth, quoted(part));
    if (!isJsonObject(part)) return;
    const { role, name, text, children } = part;
    if (role === "text") return write(depth, quoted(typeof text === "string" ? text : ""));
    if (typeof role !== "string") return;
    const states = STATES.flatMap((state) => {
      const value = part[state];
      if (value === undefined || value === false) return [];
      return value === true ? ` [${state}]` : ` [${state}=${JSON.stringify(value)}]`;
    });
    const isField = FIELD_ROLES.includes(role);
    const content = !isField && typeof text === "string" ? `: ${quoted(text)}` : "";
    const named = typeof name === "string" && name !== "" ? ` ${quoted(name)}` : "";
    write(depth, `${role}${named}${states.join("")}${content}`);
    if (!isField && children !== undefined) visit(children, depth + 1);
  };
  visit((snapshot ?? null) as Json, 0);
  return lines.join("\n");
}
