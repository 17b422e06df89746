import { RE2JS } from "re2js";
import { parseDuration } from "#domain/duration.ts";
import type { Json } from "#domain/json.ts";
import { quote, shorten, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";

/** Origins as the egress gate and the `return_url` check compare them: scheme, host and port, in canonical form. */
export function checkOrigins(list: Json | undefined, path: ConfigPath): readonly ConfigFinding[] {
  if (!Array.isArray(list)) return [];
  const seen = new Set<Json>();
  return list.flatMap((origin: Json, index: number) => {
    if (typeof origin !== "string") return [];
    const message = seen.has(origin) ? "is listed twice; remove one" : explainOrigin(origin);
    seen.add(origin);
    return message === null ? [] : [{ path: [...path, index], message }];
  });
}

/** The valid origins of a list; the others are reported by `checkOrigins`. */
export function readOrigins(list: Json | undefined): readonly string[] {
  return Array.isArray(list)
    ? list.filter((origin: Json) => typeof origin === "string" && explainOrigin(origin) === null)
    : [];
}

function explainOrigin(origin: string): string | null {
  const example = "an origin like `https://app.example.com` or `http://localhost:3000`";
  if (!URL.canParse(origin)) return `${quote(origin)} is not an origin; write ${example}`;
  const url = new URL(origin);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return `must begin with https:// or http://; write ${example}`;
  if (url.username !== "" || url.password !== "")
    return "must not contain a user name or a password; remove them";
  if (url.hostname.includes("*")) return "wildcards are not supported; list every origin";
  if (url.hostname.endsWith(".")) return "the host must not end with a dot; remove it";
  return url.origin === origin ? null : `must be scheme, host and port only; write ${quote(url.origin)}`;
}

/** Checks a duration's bounds; the schema checks its form. `zero`: 0 is allowed and has a special meaning. */
export function checkDuration(
  value: Json | undefined,
  path: ConfigPath,
  { maxMs, zero = false }: { readonly maxMs: number; readonly zero?: boolean },
): readonly ConfigFinding[] {
  const ms = value === undefined ? undefined : parseDuration(value);
  if (ms === undefined) return [];
  if (ms === 0 && !zero) return [{ path, message: "must be longer than 0" }];
  return ms > maxMs ? [{ path, message: `must be at most ${showDuration(maxMs)}` }] : [];
}

function showDuration(ms: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ] as const;
  const unit = units.find(([, size]) => ms % size === 0);
  return unit ? `${ms / unit[1]}${unit[0]}` : `${ms}ms`;
}

/** Authors' regular expressions run on RE2, which can't hang: no look-around, no back references. */
export function checkPattern(pattern: Json | undefined, path: ConfigPath): readonly ConfigFinding[] {
  if (typeof pattern !== "string") return [];
  try {
    RE2JS.compile(pattern);
    return [];
  } catch (error) {
    const reason = error instanceof Error ? shorten(error.message, 120) : "it does not compile";
    return [
      {
        path,
        message: `is not an RE2 regular expression (${reason}); look-around and back references are not supported`,
      },
    ];
  }
}

/** Finds duplicate names in a list of `{name, path}`. Each duplicate is a finding that says where the first one is. */
export function checkUnique(
  named: readonly { readonly name: string; readonly path: ConfigPath }[],
  explain: (name: string, first: ConfigPath) => string,
): readonly ConfigFinding[] {
  const first = new Map<string, ConfigPath>();
  return named.flatMap(({ name, path }) => {
    const before = first.get(name);
    if (before === undefined) first.set(name, path);
    return before === undefined ? [] : [{ path, message: explain(name, before) }];
  });
}

/** A type's own check says more about a place (such as a `url`) than the general ones. */
export function withoutSamePlace(
  general: readonly ConfigFinding[],
  own: readonly ConfigFinding[],
): readonly ConfigFinding[] {
  const places = new Set(own.map(({ path }) => JSON.stringify(path)));
  return general.filter(({ path }) => !places.has(JSON.stringify(path)));
}
