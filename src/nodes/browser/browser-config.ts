import type { Static } from "typebox";
import { listSteps, stepFindings } from "#answers/browser/check-steps.ts";
import { conditionFindings } from "#answers/browser/condition.ts";
import { conditionSchema, evidenceSchema, stepsSchema } from "#answers/browser/step-schema.ts";
import { UNBUILT_KEYS } from "#domain/schema-notes.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";
import type { ConfigFinding } from "#nodes/define-node.ts";

export const browserSchema = Type.Object(
  {
    steps: stepsSchema("node", "The steps, in order."),
    effect: Type.Optional(
      Type.Enum(["read", "write"], {
        description:
          "Default: read. `write`: the steps after `commit` change something at the target. They are never done again unless it is known that nothing has happened.",
      }),
    ),
    verify: Type.Optional(
      Type.Object(
        {
          steps: stepsSchema("node", "The steps to where a write shows, in a new browser."),
          found: conditionSchema("node", "What the page shows if the write is there."),
          missing: conditionSchema("node", "What the page shows if it is not there."),
        },
        {
          additionalProperties: false,
          description:
            "How to look up a write that may have happened, before it is done again. If the page shows neither `found` nor `missing`, the node fails.",
        },
      ),
    ),
    on_unknown: Type.Optional(
      Type.Enum(["review", "fail"], {
        default: "review",
        description:
          "What to do with a write that may have happened and can't be looked up: the operator decides whether it did, or the run fails.",
      }),
    ),
    evidence: Type.Optional(evidenceSchema(["on_failure", "always", "off"])),
  },
  {
    additionalProperties: false,
    [UNBUILT_KEYS]: {
      for_each: "repeat steps with `each` or `repeat`, or trigger a run for each record",
      throttle:
        "LATCHKEY_BROWSERS limits how many browsers a worker runs, and `concurrency` of the strategy how many runs a credential has",
    },
  },
);
export type BrowserConfig = Static<typeof browserSchema>;

export const isWrite = ({ effect }: { readonly effect?: unknown }): boolean => effect === "write";

const hasStep = (steps: Json | undefined, kind: string): boolean =>
  listSteps(steps, []).some(({ step }) => step[kind] !== undefined);

export const hasCommit = (steps: Json | undefined): boolean => hasStep(steps, "commit");

/** Called with any config. */
export const givesFile = ({ steps }: { readonly steps?: unknown }): boolean =>
  hasStep(steps as Json | undefined, "download");

/** Mistakes that the schema can't express. */
export function browserFindings(config: JsonObject): readonly ConfigFinding[] {
  return [
    ...stepFindings(config["steps"], "node", ["steps"]),
    ...extractFindings(config),
    ...downloadFindings(config),
    ...commitFindings(config),
    ...refusalFindings(config),
    ...verifyFindings(config),
  ];
}

const READS_NOTHING = "the steps read nothing; add an `extract` or a `download`, or set `effect: write`";

/** A node has records of rows or one record of fields: both at once would mix records of two shapes. */
function extractFindings(config: JsonObject): readonly ConfigFinding[] {
  const found = listSteps(config["steps"], ["steps"]).flatMap(({ step: { extract }, path }) =>
    extract === undefined ? [] : [{ extract, path: [...path, "extract"] }],
  );
  if (found.length === 0)
    return isWrite(config) || givesFile(config) ? [] : [{ path: ["steps"], message: READS_NOTHING }];
  const isField = ({ extract, path }: (typeof found)[number]): boolean =>
    JSON.stringify(extract).includes('"fields":') && !path.includes("each");
  const single = found.find(isField);
  return single === undefined || found.every(isField)
    ? []
    : [
        {
          path: single.path,
          message: "a node reads either rows or single `fields`; put one of them into a node of its own",
        },
      ];
}

/** A node's value is one file, and nothing else. */
function downloadFindings(config: JsonObject): readonly ConfigFinding[] {
  const steps = listSteps(config["steps"], ["steps"]);
  const [first, second] = steps.filter(({ step }) => step["download"] !== undefined);
  if (first === undefined) return [];
  const path = [...first.path, "download"];
  if (isWrite(config))
    return [{ path, message: "a node that writes gives no file; download it in another node" }];
  if (second !== undefined)
    return [{ path: [...second.path, "download"], message: "a node gives one file; use a node for each" }];
  const reads = steps.find(({ step }) => step["extract"] !== undefined);
  if (reads !== undefined)
    return [
      {
        path: [...reads.path, "extract"],
        message: "a node with a `download` gives a file and no records; read them in another node",
      },
    ];
  const isLast = first.path.length === 2 && first.path[1] === (config["steps"] as readonly Json[]).length - 1;
  return isLast ? [] : [{ path, message: "must be the last of the node's own steps; move it there" }];
}

/** The one place from which nothing may be done twice: it is on the way of every run. */
function commitFindings(config: JsonObject): readonly ConfigFinding[] {
  const steps = Array.isArray(config["steps"]) ? config["steps"] : [];
  const all = listSteps(steps, ["steps"]).filter(({ step }) => step["commit"] !== undefined);
  const [first, second] = all;
  if (first === undefined) return [];
  const path = [...first.path, "commit"];
  if (!isWrite(config))
    return [{ path, message: "`commit` needs `effect: write`; add it, or remove the step" }];
  if (second !== undefined)
    return [{ path: [...second.path, "commit"], message: "a node commits once; use a node for each write" }];
  if (first.path.length > 2)
    return [
      { path, message: "must be one of the node's own steps, not inside of another step; move it out" },
    ];
  return first.path[1] === steps.length - 1
    ? [{ path, message: "no step follows that could write; put it before the step that submits" }]
    : [];
}

/** Of reads it is not asked whether the target has refused something. */
function refusalFindings(config: JsonObject): readonly ConfigFinding[] {
  if (isWrite(config)) return [];
  return listSteps(config["steps"], ["steps"]).flatMap(({ step, path }) =>
    typeof step["expect"] === "object" && step["expect"] !== null && "rejected" in step["expect"]
      ? [{ path: [...path, "expect", "rejected"], message: "`rejected` needs `effect: write`; remove it" }]
      : [],
  );
}

function verifyFindings(config: JsonObject): readonly ConfigFinding[] {
  const { verify } = config as { readonly verify?: BrowserConfig["verify"] };
  if (!isWrite(config))
    return (["verify", "on_unknown"] as const)
      .filter((key) => config[key] !== undefined)
      .map((key) => ({
        path: [key],
        message: `\`${key}\` needs \`effect: write\`; add it, or remove the key`,
      }));
  if (verify === undefined) return [];
  const { steps, found, missing } = verify;
  return [
    ...stepFindings(steps as unknown as Json, "node", ["verify", "steps"]),
    ...listSteps(steps as unknown as Json, ["verify", "steps"]).flatMap(({ step, path }) =>
      step["commit"] === undefined
        ? []
        : [{ path: [...path, "commit"], message: "a look-up only reads; remove it" }],
    ),
    ...conditionFindings(found as unknown as JsonObject, ["verify", "found"]),
    ...conditionFindings(missing as unknown as JsonObject, ["verify", "missing"]),
  ];
}
