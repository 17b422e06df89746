/**
 * The module that authors of node types import as `latchkey/node`; the built-in types use the same API. Published: names are
 * added, never removed. docs/custom-nodes.md explains it.
 */
export { Type, type Static } from "typebox";
export { EXPRESSION, TEMPLATE, type Scope } from "#domain/expression.ts";
export type { Json, JsonObject } from "#domain/json.ts";
export { readConfig } from "#domain/read-config.ts";
export { validRecord, type DataRecord, type RecordBatches, type RecordError } from "#domain/record.ts";
export type { Value } from "#domain/value.ts";
export type { AtOnceContext, WholeFlow } from "./at-once.ts";
export { defineNode, NodeFailure, type Flow, type NodeContext, type NodeDefinition } from "./define-node.ts";
export { valueOf } from "./records/expression-value.ts";
export { indexedBatches, recordScopes, recordsOf } from "./records/record-flow.ts";
