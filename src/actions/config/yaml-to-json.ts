import type { Alias, Node } from "yaml";
import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { quote, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { openYaml } from "./open-yaml.ts";

/** Where an alias leads, for finding positions afterwards. */
export type AliasTargets = Map<Alias, Node>;

/** How far a file may still expand. Shared by its documents, so that aliases can't multiply. */
export interface ExpansionBudget {
  valuesLeft: number;
}

export interface YamlFinding extends ConfigFinding {
  /** Into the file's text. */
  readonly offset: number;
}

/** The file is nested too deeply or expands to too much: nothing more is read from it. */
export class TooMuchYaml extends Error {
  override readonly name = "TooMuchYaml";
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

interface Conversion {
  readonly anchors: Map<string, Node>;
  readonly targets: AliasTargets;
  readonly budget: ExpansionBudget;
  readonly findings: YamlFinding[];
}

/**
 * Turns a parsed YAML document into JSON. Whatever JSON can't express (duplicate keys, `.nan`, numbers that lose digits) becomes
 * a finding; a document that is too deep or too large throws TooMuchYaml.
 */
export function yamlToJson(
  contents: Node | null,
  budget: ExpansionBudget,
): { readonly value: Json; readonly targets: AliasTargets; readonly findings: readonly YamlFinding[] } {
  const conversion: Conversion = { anchors: new Map(), targets: new Map(), budget, findings: [] };
  const value = convert(contents, [], conversion);
  return { value, targets: conversion.targets, findings: conversion.findings };
}

const NOT_STORABLE = "the text contains U+0000 or half a surrogate pair; remove it";
// Lone surrogates are refused everywhere (docs/decisions/0011).
const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\u0000");
const offsetOf = (node: Node | null): number => node?.range?.[0] ?? 0;

function convert(node: Node | null, path: ConfigPath, conversion: Conversion): Json {
  if (path.length > limits.jsonDepthMax) {
    throw new TooMuchYaml(`nested deeper than ${limits.jsonDepthMax} levels`, offsetOf(node));
  }
  // Aliases are expanded by copying, so this count is what stops an alias bomb.
  if (--conversion.budget.valuesLeft < 0) {
    throw new TooMuchYaml(
      `the file expands to more than ${limits.jsonValuesMax} values; use fewer aliases`,
      offsetOf(node),
    );
  }
  const { isAlias, isMap, isScalar, isSeq } = openYaml();
  if (node !== null && !isAlias(node) && node.anchor) conversion.anchors.set(node.anchor, node);
  if (isAlias(node)) return convertAlias(node, path, conversion);
  if (isMap(node)) return convertMap(node, path, conversion);
  if (isSeq(node))
    return node.items.map((item, index) => convert(item as Node | null, [...path, index], conversion));
  if (isScalar(node)) return convertScalar(node, path, conversion);
  return null;
}

function convertAlias(node: Alias, path: ConfigPath, conversion: Conversion): Json {
  const target = conversion.anchors.get(node.source);
  if (target === undefined) {
    const message = `the alias ${quote(`*${node.source}`)} has no anchor before it; put text that begins with * in quotes`;
    conversion.findings.push({ offset: offsetOf(node), path, message });
    return null;
  }
  conversion.targets.set(node, target);
  return convert(target, path, conversion);
}

/** The text of a key. The parser has rejected other keys (`stringKeys`). */
export function keyText(key: unknown): string {
  return openYaml().isScalar(key) && typeof key.value === "string" ? key.value : "";
}

function convertMap(node: Node & { items: unknown[] }, path: ConfigPath, conversion: Conversion): JsonObject {
  const object: Record<string, Json> = {};
  for (const item of node.items as { key: Node; value: Node | null }[]) {
    const key = keyText(item.key);
    const value = convert(item.value, [...path, key], conversion);
    const refuse = (message: string) =>
      conversion.findings.push({ offset: offsetOf(item.key), path: [...path, key], at: "key", message });
    if (!isStorable(key)) refuse(NOT_STORABLE);
    else if (key === "__proto__") refuse("the key `__proto__` can't be used; choose another name");
    else if (Object.hasOwn(object, key)) refuse(`the key ${quote(key)} occurs twice; remove one`);
    else object[key] = value;
  }
  return object;
}

function convertScalar(
  node: Node & { value: unknown; source?: string | undefined },
  path: ConfigPath,
  conversion: Conversion,
): Json {
  const { value } = node;
  const written = node.source ?? String(value);
  const refuse = (message: string): null => {
    conversion.findings.push({ offset: offsetOf(node), path, message });
    return null;
  };
  if (typeof value === "string") return isStorable(value) ? value : refuse(NOT_STORABLE);
  if (typeof value === "boolean" || value === null) return value;
  if (typeof value !== "number") return refuse(`${quote(written)} is not a JSON value; put it in quotes`);
  if (!Number.isFinite(value))
    return refuse(`${quote(written)} is not a JSON number; put it in quotes if it is text`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return refuse(`the number ${quote(written)} is too large to be kept exactly; put it in quotes`);
  }
  return value;
}
