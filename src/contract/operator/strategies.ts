import Type from "typebox";
import { absent, againstQuery, applied, form, inForce, listed, versionAnswer, versions } from "./config.ts";
import { closed, page, paging, text } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Strategies";
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
  tag: TAG,
  summary: "List strategies, by account and id",
  permission: "config.read",
  query: listed,
  status: 200,
  answer: page("Strategies", closed(seen, { title: "Strategy" })),
});

export const readStrategy = defineOperation({
  id: "readStrategy",
  method: "get",
  path: ONE,
  tag: TAG,
  summary: "Read a strategy",
  description: "The current version: its form and its document.",
  permission: "config.read",
  status: 200,
  answer: closed({ ...seen, form, yaml: text("The document.") }, { title: "StrategyDetail" }),
  failures: absent("strategy"),
});

export const listStrategyVersions = defineOperation({
  id: "listStrategyVersions",
  method: "get",
  path: `${ONE}/versions`,
  tag: TAG,
  summary: "List a strategy's versions, newest first",
  permission: "config.read",
  query: closed({ ...paging }),
  status: 200,
  answer: versions,
  failures: absent("strategy"),
});

export const readStrategyVersion = defineOperation({
  id: "readStrategyVersion",
  method: "get",
  path: `${ONE}/versions/{version}`,
  tag: TAG,
  summary: "Read a version and its differences from another one",
  permission: "config.read",
  query: againstQuery,
  status: 200,
  answer: versionAnswer,
  failures: absent("strategy"),
});

export const publishStrategyVersion = defineOperation({
  id: "publishStrategyVersion",
  method: "post",
  path: `${ONE}/versions/{version}/publish`,
  tag: TAG,
  summary: "Publish an earlier version's document again",
  description: "Publishes it as a new version, checked as by `apply`.",
  permission: "config.apply",
  status: 200,
  answer: applied,
  failures: absent("strategy"),
});

export const retireStrategy = defineOperation({
  id: "retireStrategy",
  method: "post",
  path: `${ONE}/retire`,
  tag: TAG,
  summary: "Retire a strategy",
  description: "No new sessions can be created with it; existing credentials keep working.",
  permission: "config.apply",
  status: 200,
  answer: applied,
  failures: absent("strategy"),
});

export const restoreStrategy = defineOperation({
  id: "restoreStrategy",
  method: "post",
  path: `${ONE}/restore`,
  tag: TAG,
  summary: "Restore a retired strategy",
  permission: "config.apply",
  status: 200,
  answer: applied,
  failures: absent("strategy"),
});
