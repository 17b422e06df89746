import type { Json, JsonObject } from "#domain/json.ts";
import { parseDuration } from "#domain/duration.ts";
import { namedSources, type ConfigFinding } from "#nodes/define-node.ts";
import { httpFindings, httpWarnings } from "#nodes/http/http-check.ts";
import { STEP_KEYS, stepsOf } from "./loop-steps.ts";

const WHY_NOT: Readonly<Record<string, string>> = {
  input: "an input must precede all other nodes",
  output: "an output takes the records of the whole loop; name the loop in its `from`",
  review: "a review covers all records at once; put it before or after the loop",
  loop: "loops can't be nested; use two loops, the second with the records of the first",
};

/** Mistakes in the steps of a loop that the schema can't express. */
export function loopFindings(config: JsonObject): readonly ConfigFinding[] {
  const steps = stepsOf(config);
  return steps.flatMap((step, index) =>
    [...typeFindings(step), ...idFindings(steps, index), ...fileFindings(steps, index), ...httpOf(step)].map(
      ({ path, ...finding }) => ({ ...finding, path: ["steps", index, ...path] }),
    ),
  );
}

/** Warnings about the steps. */
export const loopWarnings = (config: JsonObject): readonly ConfigFinding[] =>
  stepsOf(config).flatMap((step, index) =>
    httpWarnings(httpKeysOf(step)).map((warning) => ({
      ...warning,
      path: ["steps", index, ...warning.path],
    })),
  );

/** The keys of a step that are those of `http`. */
function httpKeysOf(step: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(step).filter(([key]) => !Object.hasOwn(STEP_KEYS, key)));
}

const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

function httpOf(step: JsonObject): readonly ConfigFinding[] {
  if (step["type"] !== "http") return [];
  return httpFindings(httpKeysOf(step), {
    from: [],
    credential: text(step["credential"]),
    timeoutMs: parseDuration(step["timeout"] ?? null) ?? null,
  });
}

function typeFindings({ type }: JsonObject): readonly ConfigFinding[] {
  if (type === "http" || typeof type !== "string") return [];
  const why = WHY_NOT[type] ?? "transform records before the loop, after it, or in `gives`";
  return [{ path: ["type"], message: `a step of a loop must be of type \`http\`, not \`${type}\`: ${why}` }];
}

function idFindings(steps: readonly JsonObject[], index: number): readonly ConfigFinding[] {
  const id = text(steps[index]?.["id"]) ?? "";
  const isTaken = steps.slice(0, index).some((step) => step["id"] === id);
  return isTaken
    ? [
        {
          path: ["id"],
          message: `another step of the loop already has the id \`${id}\`; choose another one`,
        },
      ]
    : [];
}

/** A file in a request may be the output of an earlier step of the same iteration. */
function fileFindings(steps: readonly JsonObject[], index: number): readonly ConfigFinding[] {
  const step = steps[index] ?? {};
  return namedSources({ type: "http", config: httpKeysOf(step) }).flatMap(({ path, source }) => {
    const at = steps.findIndex(({ id }) => id === source);
    if (at < 0) return [];
    if (at >= index)
      return [
        {
          path,
          message: `the step \`${source}\` comes later; name an earlier one, or a node of the Blueprint`,
        },
      ];
    const gives = steps[at] ?? {};
    return gives["records"] === undefined && gives["parse"] === undefined
      ? []
      : [
          {
            path,
            message: `the step \`${source}\` outputs records, but this key needs a file; add \`save: file\` to it`,
          },
        ];
  });
}
