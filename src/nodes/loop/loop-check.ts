import type { Json, JsonObject } from "#domain/json.ts";
import { parseDuration } from "#domain/duration.ts";
import { namedSources, type ConfigFinding } from "#nodes/define-node.ts";
import { httpFindings, httpWarnings } from "#nodes/http/http-check.ts";
import { STEP_KEYS, stepsOf } from "./loop-steps.ts";

const WHY_NOT: Readonly<Record<string, string>> = {
  input: "an input comes before all other nodes",
  output: "an output takes what the whole loop gives; name the loop in its `from`",
  review: "a person is asked about all records at once; put the review before the loop or after it",
  loop: "a loop stands in no other; let the inner one read what the outer one gives",
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

/** What the steps leave to chance. */
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
  const why = WHY_NOT[type] ?? "make records of records before the loop, after it, or in `gives`";
  return [{ path: ["type"], message: `a step of a loop is of type \`http\`, and not \`${type}\`: ${why}` }];
}

function idFindings(steps: readonly JsonObject[], index: number): readonly ConfigFinding[] {
  const id = text(steps[index]?.["id"]) ?? "";
  const isTaken = steps.slice(0, index).some((step) => step["id"] === id);
  return isTaken
    ? [
        {
          path: ["id"],
          message: `another step of the loop has the id \`${id}\` already; choose another one`,
        },
      ]
    : [];
}

/** A file of a request may be what an earlier step of the same turn gave. */
function fileFindings(steps: readonly JsonObject[], index: number): readonly ConfigFinding[] {
  const step = steps[index] ?? {};
  return namedSources({ type: "http", config: httpKeysOf(step) }).flatMap(({ path, source }) => {
    const at = steps.findIndex(({ id }) => id === source);
    if (at < 0) return [];
    if (at >= index)
      return [
        { path, message: `the step \`${source}\` comes later; name one before, or a node of the Blueprint` },
      ];
    const gives = steps[at] ?? {};
    return gives["records"] === undefined && gives["parse"] === undefined
      ? []
      : [
          {
            path,
            message: `the step \`${source}\` gives records, and this key reads a file; say \`save: file\` there`,
          },
        ];
  });
}
