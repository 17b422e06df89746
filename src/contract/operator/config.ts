import type { TProperties } from "typebox";
import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { LANGUAGES } from "#domain/language.ts";
import {
  closed,
  conflict,
  count,
  missing,
  ofAccount,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
  whole,
} from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Configuration");

export const listed = closed({
  ...paging,
  account: ofAccount,
  retired: Type.Optional(
    Type.Boolean({ description: "Only retired ones, or only those that are not retired." }),
  ),
});

/** The common properties of every current document. */
export const inForce = {
  account: text("The account's name."),
  version: count("The current version."),
  retired: Type.Boolean({ description: "Whether it is retired: nothing new starts with it." }),
  applied_at: time("When this version was applied."),
  applied_by: orNull(text("The operator who did it; `null`: the command line, or an operator token.")),
} satisfies TProperties;

export const difference = closed(
  {
    path: text("The place, such as `nodes.lines.fields.total`."),
    before: orNull(text("The old value, as JSON; `null`: none.")),
    after: orNull(text("The new value, as JSON; `null`: none.")),
  },
  { title: "Difference" },
);

const versions = page(
  "Versions",
  closed({
    version: count("Its number."),
    applied_at: time("When it was applied."),
    applied_by: orNull(text("The operator who did it; `null`: the command line, or an operator token.")),
    is_in_force: Type.Boolean({ description: "Whether it is the current one." }),
  }),
);

const againstQuery = closed({
  against: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      description: "The version to compare with; default: the previous one.",
    }),
  ),
});

const versionAnswer = closed(
  {
    version: count("Its number."),
    applied_at: time("When it was applied."),
    applied_by: orNull(text("The operator who did it; `null`: the command line, or an operator token.")),
    yaml: text("The document."),
    against: orNull(count("The version that it is compared with; `null`: this is the first one.")),
    differences: Type.Array(difference),
  },
  { title: "Version" },
);

export const form = closed(
  {
    name: text("The form's heading."),
    description: orNull(text("The text below the heading.")),
    fields: Type.Array(
      closed({
        key: text("The field's key."),
        label: text("The field's label."),
        type: text("text, password, select, …"),
        is_required: Type.Boolean({ description: "Whether it is required." }),
        is_secret: Type.Boolean({ description: "Whether its value is hidden and never shown again." }),
        placeholder: orNull(text("The placeholder, shown while it is empty.")),
        help: orNull(text("The help text below it.")),
        options: Type.Array(
          closed({ value: text("The value that is sent."), label: text("The text that is shown.") }),
        ),
      }),
    ),
  },
  { title: "Form" },
);

export const graph = closed(
  {
    nodes: Type.Array(
      closed({
        id: text("The node's id."),
        type: text("Its type."),
        name: orNull(text("Its name.")),
        ref_key: orNull(text("For an input: its key in the trigger.")),
        gives: oneOf(["records", "value", "results"], "The kind of its output."),
        when: orNull(text("The condition under which it is executed.")),
        credential: orNull(text("The slot of the credential that it uses.")),
        milestone: orNull(text("The progress step that callers see when it starts.")),
        steps: Type.Array(text("The id of a loop's step, in order.")),
      }),
    ),
    edges: Type.Array(
      closed({
        from: text("A node's id."),
        to: text("A node's id."),
        kind: oneOf(["flow", "reads"], "`flow`: taken with `from`; `reads`: read by an expression."),
      }),
    ),
  },
  { title: "Graph" },
);

const documents = Type.Array(
  closed({
    file: Type.String({ minLength: 1, maxLength: 200, description: "The file name to use in problems." }),
    text: Type.String({
      maxLength: limits.configBodyBytesMax,
      description: "YAML or JSON, with one or more documents.",
    }),
  }),
  {
    minItems: 1,
    maxItems: 100,
    description: "The documents, up to 256 KiB in total. Apply larger ones with `latchkey apply`.",
  },
);

const base = Type.String({
  pattern: "^[0-9a-f]{64}$",
  description: "`base` of a plan, 64 hexadecimal digits.",
});

const baseVersion = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: 1_000_000_000,
    description:
      "The version from which the documents' one Blueprint or strategy was written; 0: it is new. Without it, any current version is replaced.",
  }),
);

const problem = closed(
  {
    file: text("The file's name."),
    line: count("From 1."),
    column: count("From 1."),
    path: text("The place, such as `nodes[3].request.url`; empty for a whole document."),
    message: text("The problem and its remedy."),
  },
  { title: "ConfigProblem" },
);

const problems = Type.Array(problem, { description: "Empty: it can be applied." });

export const kind = oneOf(["account", "strategy", "blueprint"], "The kind of document.");

export const checkConfig = defineOperation({
  id: "checkConfig",
  method: "post",
  path: "/config/check",
  summary: "Check documents while they are typed",
  description: "Returns every problem with its place, as `latchkey validate` does. Changes nothing.",
  permission: "config.read",
  accounts: "documents",
  body: closed({
    documents,
    language: Type.Optional(oneOf(LANGUAGES, "The language of the forms; default `en`.")),
  }),
  bodyBytesMax: limits.configBodyBytesMax,
  answer: closed(
    {
      problems,
      warnings: Type.Array(problem, {
        description: "Warnings of documents without problems. They can be applied.",
      }),
      documents: Type.Array(
        closed({
          kind,
          account: text("Its account's name."),
          id: text("Its id."),
          file: text("The file's name."),
          graph: orNull(graph),
          form: orNull(form),
        }),
        { description: "The documents without problems." },
      ),
    },
    { title: "CheckedConfig" },
  ),
});

export const change = {
  change: oneOf(["create", "update", "retire", "unchanged"], "The kind of change."),
  kind,
  account: text("Its account's name."),
  id: text("Its id."),
};

const warnings = Type.Array(text("A consequence or requirement of the changes, with the remedy."));

export const planConfig = defineOperation({
  id: "planConfig",
  method: "post",
  path: "/config/plan",
  summary: "Preview what applying documents would change",
  description:
    "The same as `latchkey plan`. Changes nothing. `conflict` is not `null` if `base_version` is no longer the current version.",
  permission: "config.read",
  accounts: "documents",
  body: closed({ documents, base_version: baseVersion }),
  bodyBytesMax: limits.configBodyBytesMax,
  answer: closed(
    {
      problems,
      changes: Type.Array(closed({ ...change, differences: Type.Array(difference) })),
      conflict: orNull(
        closed(
          {
            version: count("The current version; 0: there is none."),
            applied_at: orNull(time("When it was applied.")),
            applied_by: orNull(
              text("The operator who did it; `null`: the command line, or an operator token."),
            ),
            theirs: Type.Array(difference, {
              description: "What it changed since `base_version`.",
            }),
            ours: Type.Array(difference, { description: "What the documents change since `base_version`." }),
          },
          { title: "VersionConflict" },
        ),
      ),
      warnings,
      base: orNull(
        text(
          "The state of the current documents, for `base` of `/config/apply`; `null`: there are problems.",
        ),
      ),
      needs: Type.Array(text("Why applying them would need two admins."), {
        description: "Empty: they would be applied immediately.",
      }),
    },
    { title: "ConfigPlan" },
  ),
});

export const applied = closed(
  {
    changes: Type.Array(closed({ ...change, differences: Type.Array(difference) }), {
      description: "Empty if they were proposed.",
    }),
    proposal: orNull(
      closed(
        {
          id: text("Its id (`prop_...`)."),
          reasons: Type.Array(text("Why it needs two admins.")),
          confirmations_wanted: count("How many admins must still confirm it."),
          expires_at: time("The deadline for confirming it."),
        },
        { title: "NewProposal" },
      ),
    ),
    warnings,
  },
  { title: "AppliedConfig" },
);

export const applyConfig = defineOperation({
  id: "applyConfig",
  method: "post",
  path: "/config/apply",
  summary: "Apply documents",
  description:
    "The same as `latchkey apply`: all documents are applied in one transaction, each change as a new version, or none, and the answer is 422 with a detail for each problem. If an account requires a second admin for one of the changes, nothing is applied, and `proposal` is the new proposal.",
  permission: "config.apply",
  accounts: "documents",
  body: closed({ documents, base_version: baseVersion, base: Type.Optional(base) }),
  bodyBytesMax: limits.configBodyBytesMax,
  answer: applied,
  failures: [
    conflict("`base_version` or `base` is not current: somebody has published another version since."),
  ],
});

export const exportConfig = defineOperation({
  id: "exportConfig",
  method: "get",
  path: "/config/export",
  summary: "Export the current documents",
  description: "The same as `latchkey export`: accounts first, as YAML. Applying them again changes nothing.",
  permission: "config.read",
  query: closed({ account: ofAccount }),
  answer: whole(
    "ExportedDocuments",
    closed(
      {
        kind: oneOf(["account", "strategy", "blueprint"], "The kind of document."),
        account: text("The account's name."),
        id: text("The account's name, the strategy's id or the Blueprint's key."),
        yaml: text("The document."),
      },
      { title: "ExportedDocument" },
    ),
  ),
  failures: [missing("account")],
});

export const readConfigSchema = defineOperation({
  id: "readConfigSchema",
  method: "get",
  path: "/config/schema",
  summary: "Read the JSON Schema of all documents, for editors",
  permission: "config.read",
  accounts: "none",
  answer: Type.Unsafe<object>({
    type: "object",
    description: "The same as the output of `latchkey schema`.",
  }),
});

/** The failures of reading, publishing and retiring. */
export const absent = (what: string) => [missing(`account or ${what}`)];

/** The operations on versions, of Blueprints and strategies alike. `name` is a part of their ids, `noun` of their texts. */
export function versionOperations<Path extends string>(
  kind: { readonly tag: string; readonly path: Path; readonly name: string; readonly noun: string },
  texts: { readonly publish: string; readonly retire: string },
) {
  const { path, name, noun } = kind;
  const define = operationsOf(kind.tag);
  const failures = absent(noun);
  return {
    list: define({
      id: `list${name}Versions`,
      method: "get",
      path: `${path}/versions` as const,
      summary: `List a ${noun}'s versions, newest first`,
      permission: "config.read",
      query: closed({ ...paging }),
      answer: versions,
      failures,
    }),
    read: define({
      id: `read${name}Version`,
      method: "get",
      path: `${path}/versions/{version}` as const,
      summary: "Read a version and its differences from another one",
      permission: "config.read",
      query: againstQuery,
      answer: versionAnswer,
      failures,
    }),
    publish: define({
      id: `publish${name}Version`,
      method: "post",
      path: `${path}/versions/{version}/publish` as const,
      summary: "Publish an earlier version's document again",
      description: texts.publish,
      permission: "config.apply",
      answer: applied,
      failures,
    }),
    retire: define({
      id: `retire${name}`,
      method: "post",
      path: `${path}/retire` as const,
      summary: `Retire a ${noun}`,
      description: texts.retire,
      permission: "config.apply",
      answer: applied,
      failures,
    }),
    restore: define({
      id: `restore${name}`,
      method: "post",
      path: `${path}/restore` as const,
      summary: `Restore a retired ${noun}`,
      permission: "config.apply",
      answer: applied,
      failures,
    }),
  };
}
