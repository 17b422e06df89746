import Type, { type TProperties } from "typebox";
import { limits } from "#domain/limits.ts";
import { LANGUAGES } from "#domain/language.ts";
import { closed, count, missing, oneOf, orNull, page, paging, text, time } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Configuration";

const ofAccount = Type.Optional(Type.String({ maxLength: 200, description: "The account's name." }));
export const listed = closed({
  ...paging,
  account: ofAccount,
  retired: Type.Optional(Type.Boolean({ description: "Only those that are retired, or are not." })),
});

/** What every document in force tells about itself. */
export const inForce = {
  account: text("The account's name."),
  version: count("The version in force."),
  retired: Type.Boolean({ description: "Nothing begins with it any more." }),
  applied_at: time("When this version was applied."),
  applied_by: orNull(text("The operator who did it; `null`: the command line.")),
} satisfies TProperties;

export const difference = closed(
  {
    path: text("The place, like `nodes.lines.fields.total`."),
    before: orNull(text("What was there, as JSON; `null`: nothing.")),
    after: orNull(text("What is there, as JSON; `null`: nothing.")),
  },
  { title: "Difference" },
);

export const versions = page(
  "Versions",
  closed({
    version: count("Its number."),
    applied_at: time("When it was applied."),
    applied_by: orNull(text("The operator who did it; `null`: the command line.")),
    is_in_force: Type.Boolean({ description: "Whether it is the one in force." }),
  }),
);

export const againstQuery = closed({
  against: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      description: "The version to compare with; left out: the one before.",
    }),
  ),
});

export const versionAnswer = closed(
  {
    version: count("Its number."),
    applied_at: time("When it was applied."),
    applied_by: orNull(text("The operator who did it; `null`: the command line.")),
    yaml: text("The document."),
    against: orNull(count("The version that it is compared with; `null`: it is the first.")),
    differences: Type.Array(difference),
  },
  { title: "Version" },
);

export const form = closed(
  {
    name: text("What the form is headed with."),
    description: orNull(text("What stands below.")),
    fields: Type.Array(
      closed({
        key: text("The field's key."),
        label: text("What stands beside it."),
        type: text("text, password, select, …"),
        is_required: Type.Boolean({ description: "Whether it must be filled in." }),
        is_secret: Type.Boolean({ description: "Whether it is hidden and never shown again." }),
        placeholder: orNull(text("Shown in it while it is empty.")),
        help: orNull(text("What stands below it.")),
        options: Type.Array(closed({ value: text("What is sent."), label: text("What is shown.") })),
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
        gives: oneOf(["records", "value", "results"], "What it gives."),
        when: orNull(text("On what condition it is executed.")),
        credential: orNull(text("The slot of the credential that it uses.")),
        milestone: orNull(text("What callers are told when it begins.")),
        steps: Type.Array(text("Of a loop: the id of a step, in their order.")),
      }),
    ),
    edges: Type.Array(
      closed({
        from: text("A node's id."),
        to: text("A node's id."),
        kind: oneOf(["flow", "reads"], "Taken with `from`, or read by an expression."),
      }),
    ),
  },
  { title: "Graph" },
);

const documents = Type.Array(
  closed({
    file: Type.String({ minLength: 1, maxLength: 200, description: "What problems call it." }),
    text: Type.String({
      maxLength: limits.configBodyBytesMax,
      description: "YAML or JSON; one document or several.",
    }),
  }),
  {
    minItems: 1,
    maxItems: 100,
    description: "What is in question: 256 KiB in all. Larger documents are applied by `latchkey apply`.",
  },
);

const problem = closed(
  {
    file: text("As it was called."),
    line: count("From 1."),
    column: count("From 1."),
    path: text("Like `nodes[3].request.url`; empty for a whole document."),
    message: text("What is wrong, and the remedy."),
  },
  { title: "ConfigProblem" },
);

const problems = Type.Array(problem, { description: "Empty: it can be applied." });

export const kind = oneOf(["account", "strategy", "blueprint"], "What it is.");

export const checkConfig = defineOperation({
  id: "checkConfig",
  method: "post",
  path: "/config/check",
  tag: TAG,
  summary: "Check documents while they are typed",
  description: "Every problem with its place, in the words of `latchkey validate`. Changes nothing.",
  permission: "config.read",
  body: closed({
    documents,
    language: Type.Optional(oneOf(LANGUAGES, "Of the forms; `en` unless given.")),
  }),
  bodyBytesMax: limits.configBodyBytesMax,
  status: 200,
  answer: closed(
    {
      problems,
      warnings: Type.Array(problem, {
        description: "What documents without a problem leave to chance: they can be applied.",
      }),
      documents: Type.Array(
        closed({
          kind,
          account: text("Its account's name."),
          id: text("Its id."),
          file: text("As it was called."),
          graph: orNull(graph),
          form: orNull(form),
        }),
        { description: "Those without a problem." },
      ),
    },
    { title: "CheckedConfig" },
  ),
});

export const change = {
  change: oneOf(["create", "update", "retire", "unchanged"], "What is done."),
  kind,
  account: text("Its account's name."),
  id: text("Its id."),
};

const warnings = Type.Array(text("What the changes bring with them or need, and the remedy."));

export const planConfig = defineOperation({
  id: "planConfig",
  method: "post",
  path: "/config/plan",
  tag: TAG,
  summary: "Say what applying documents would change",
  description: "As `latchkey plan`. Changes nothing.",
  permission: "config.read",
  body: closed({ documents }),
  bodyBytesMax: limits.configBodyBytesMax,
  status: 200,
  answer: closed(
    {
      problems,
      changes: Type.Array(closed({ ...change, differences: Type.Array(difference) })),
      warnings,
      needs: Type.Array(text("Why applying them would need two admins."), {
        description: "Empty: they would be applied at once.",
      }),
    },
    { title: "ConfigPlan" },
  ),
});

export const applied = closed(
  {
    changes: Type.Array(closed(change), { description: "Empty where they were proposed." }),
    proposal: orNull(
      closed(
        {
          id: text("Its id (`prop_...`)."),
          reasons: Type.Array(text("Why it needs two admins.")),
          confirmations_wanted: count("How many admins must still confirm it."),
          expires_at: time("Until when it can be confirmed."),
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
  tag: TAG,
  summary: "Create and update what documents name",
  description:
    "As `latchkey apply`: all of them in one transaction, each change a new version; or none, and 422 with a detail for each problem. Where an account wants a second admin for one of the changes, none is made: `proposal` names what waits.",
  permission: "config.apply",
  body: closed({ documents }),
  bodyBytesMax: limits.configBodyBytesMax,
  status: 200,
  answer: applied,
});

export const readConfigSchema = defineOperation({
  id: "readConfigSchema",
  method: "get",
  path: "/config/schema",
  tag: TAG,
  summary: "Read the JSON Schema of all documents, for editors",
  permission: "config.read",
  status: 200,
  answer: Type.Unsafe<object>({ type: "object", description: "As `latchkey schema` prints it." }),
});

/** What reading, publishing and retiring may fail with. */
export const absent = (what: string) => [missing(`account or ${what}`)];
