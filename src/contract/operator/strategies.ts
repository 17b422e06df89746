import { Type } from "#lib/type.ts";
import { absent, form, inForce, listed, versionOperations } from "./config.ts";
import { LANGUAGES } from "#domain/language.ts";
import { limits } from "#domain/limits.ts";
import { closed, oneOf, page, text } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const TAG = "Strategies";
const defineOperation = operationsOf(TAG);
const ONE = "/accounts/{account}/strategies/{strategyId}";

const seen = {
  id: text("The strategy's id (`strat_...`)."),
  name: text("Its name, in English if available."),
  login_type: text("Its login type."),
  hosts: Type.Array(text("An origin that may receive the credential.")),
  fields: Type.Array(text("The key of a field of its form.")),
  ...inForce,
};

export const listStrategies = defineOperation({
  id: "listStrategies",
  method: "get",
  path: "/strategies",
  summary: "List strategies, by account and id",
  permission: "config.read",
  accounts: "own",
  query: listed,
  answer: page("Strategies", closed(seen, { title: "Strategy" })),
});

export const readStrategy = defineOperation({
  id: "readStrategy",
  method: "get",
  path: ONE,
  summary: "Read a strategy",
  description: "The current version: its form and its document.",
  permission: "config.read",
  answer: closed({ ...seen, form, yaml: text("The document.") }, { title: "StrategyDetail" }),
  failures: absent("strategy"),
});

export const previewForm = defineOperation({
  id: "previewForm",
  method: "post",
  path: "/strategies/preview",
  summary: "Preview the hosted form of a strategy",
  description:
    "The page that end users see, as HTML, with the branding of the strategy's account. The document need not be published. Changes nothing.",
  permission: "config.read",
  accounts: "documents",
  body: closed({
    text: Type.String({
      maxLength: limits.configBodyBytesMax,
      description: "One strategy, as YAML or JSON.",
    }),
    language: oneOf(LANGUAGES, "The language of the page."),
    scheme: oneOf(["light", "dark"], "Its colour scheme."),
  }),
  bodyBytesMax: limits.configBodyBytesMax,
  answer: closed({ page: text("The page: a complete HTML document.") }, { title: "FormPreview" }),
});

export const {
  list: listStrategyVersions,
  read: readStrategyVersion,
  publish: publishStrategyVersion,
  retire: retireStrategy,
  restore: restoreStrategy,
} = versionOperations(
  { tag: TAG, path: ONE, name: "Strategy", noun: "strategy" },
  {
    publish: "Publishes it as a new version, checked as by `apply`.",
    retire: "No new sessions can be created with it; existing credentials keep working.",
  },
);
