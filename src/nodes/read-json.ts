import { limits } from "#domain/limits.ts";
import type { Json } from "#domain/json.ts";

export type ReadJson =
  | { readonly ok: true; readonly json: Json }
  | { readonly ok: false; readonly problem: string };

/**
 * Parses JSON text that came from outside. Nesting is capped: `JSON.parse` takes any depth, and whatever serialises or clones
 * the value later would overflow its stack (design, page 6, finding 10). The problem holds no part of the text.
 */
export function readJson(text: string): ReadJson {
  let json: Json;
  try {
    // A byte order mark is no part of JSON, but exports carry it.
    json = JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text) as Json;
  } catch {
    return { ok: false, problem: text.trim() === "" ? "is empty, not JSON" : "is not JSON" };
  }
  if (isDeeperThan(json, limits.dataDepthMax)) {
    return { ok: false, problem: `is nested deeper than ${limits.dataDepthMax} levels` };
  }
  return { ok: true, json };
}

function isDeeperThan(json: Json, levels: number): boolean {
  if (typeof json !== "object" || json === null) return false;
  if (levels === 0) return true;
  const parts: readonly unknown[] = Array.isArray(json) ? json : Object.values(json);
  for (const part of parts) if (isDeeperThan(part as Json, levels - 1)) return true;
  return false;
}
