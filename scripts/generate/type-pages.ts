import { strategyTemplate } from "#cli/strategy-template.ts";
import { commonLoginKeys, commonNodeKeys } from "#domain/config-schema.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { NodeType } from "#nodes/define-node.ts";
import { NAMED } from "#domain/named-schema.ts";
import { nodeTypes } from "#nodes/registry.ts";
import type { LoginType } from "#strategies/define-login.ts";
import { loginTypes } from "#strategies/registry.ts";
import { must } from "#lib/assert.ts";
import type { Generated } from "./generated.ts";
import { LOGIN_TEXTS, NODE_TEXTS } from "./type-texts.ts";

/** `docs/nodes/<type>.md` and `docs/logins/<type>.md`: from the schemas that `apply` checks by. */
export const typePages: readonly Generated[] = [
  ...[...nodeTypes.values()].map((type) => ({
    path: `docs/nodes/${type.type}.md`,
    content: async () => nodePage(type),
  })),
  ...[...loginTypes.values()].map((type) => ({
    path: `docs/logins/${type.type}.md`,
    content: async () => loginPage(type),
  })),
];

const NOTE =
  "<!-- Written by `npm run generate` from the schema of the type and scripts/generate/type-texts.ts. -->";
const EFFECTS = {
  none: "Pure: its records are streamed, and recomputed after a crash.",
  read: "Reads from outside: its output is stored in the run's journal.",
  write: "Writes: each write is sent at most once.",
} as const;
const TAKES = {
  none: "nothing",
  value: "a value",
  records: "records",
} as const;

function nodePage(type: NodeType): string {
  const { example, gives, errors } = must(NODE_TEXTS[type.type], `the text of node type ${type.type}`);
  const isHttp = type.type === "http" || type.hasTurns === true;
  const hosts = isHttp || type.usesCredential ? "hosts: [https://data.example.com]\n" : "";
  return page(`\`${type.type}\``, type.description, [
    ["Keys", keyTable(type.schema) || "None besides the common ones."],
    [
      "Example",
      yaml(`blueprint: example
account: acme
${hosts}nodes:
  - { id: words, type: input, refKey: words, accepts: json }
  - { id: rows, type: parse, from: words, format: json }
${example.replaceAll(/^/gm, "  ")}
${outputOf(type, example)}`),
    ],
    [
      "Input and output",
      `Input: ${TAKES[type.takes]}. Output: ${gives}\n\n${isHttp ? `${EFFECTS.read} ${EFFECTS.write}` : EFFECTS[type.effect({})]}`,
    ],
    ["Errors", list(errors)],
    [
      "More",
      `Every node also has the keys ${names(commonNodeKeys)}: [Blueprints](../blueprints.md#nodes). \`latchkey schema\` provides all keys to editors.`,
    ],
  ]);
}

/** An output for the example's last node. A value can't be a result, and an output node needs no other. */
function outputOf(type: NodeType, example: string): string {
  if (type.type === "output") return "";
  const last = [...example.matchAll(/^- (?:\{ )?id: (\w+)/gm)].at(-1)?.[1] ?? "";
  return `  - { id: out, type: output, refKey: out, from: ${type.type === "input" ? "rows" : last} }\n`;
}

function loginPage(type: LoginType): string {
  const { gives, errors } = must(LOGIN_TEXTS[type.type], `the text of login type ${type.type}`);
  const names_ = { name: "strat_example", account: "acme", strategy: null };
  return page(`Login: \`${type.type}\``, type.description, [
    ["Keys", keyTable(type.schema) || "None besides `type`."],
    ["Example", yaml(strategyTemplate(type.type, names_))],
    ["Result", gives],
    ["Errors", errors.length === 0 ? "None." : list(errors)],
    [
      "More",
      `Every login also has the keys ${names(commonLoginKeys)}: [Strategies](../strategies.md). \`latchkey new strategy <name> --login ${type.type}\` creates one as a starting point.`,
    ],
  ]);
}

export const page = (
  title: string,
  summary: string,
  sections: readonly (readonly [heading: string, text: string])[],
): string =>
  `${[NOTE, `# ${title}`, summary, ...sections.flatMap(([heading, text]) => [`## ${heading}`, text])].join("\n\n")}\n`;
export const yaml = (text: string): string => `\`\`\`yaml\n${text}\`\`\``;
const list = (items: readonly string[]): string => items.map((item) => `- ${item}`).join("\n");
const names = (keys: object): string =>
  Object.keys(keys)
    .map((key) => `\`${key}\``)
    .join(", ");

/** Empty for a schema without keys. */
export function keyTable(schema: object): string {
  const rows = rowsOf(JSON.parse(JSON.stringify(schema)) as JsonObject, "");
  if (rows.length === 0) return "";
  return ["| key | type | default | required | description |", "|---|---|---|---|---|", ...rows].join("\n");
}

/** One row a key, keys inside of it after it. */
function rowsOf(schema: JsonObject, before: string): readonly string[] {
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const required: readonly Json[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties).flatMap(([key, value]) => {
    const property = isJsonObject(value) ? value : {};
    const name = `${before}${key}`;
    const cells = [
      `\`${name}\``,
      typeOf(property),
      property["default"] === undefined ? "" : `\`${JSON.stringify(property["default"])}\``,
      required.includes(key) ? "yes" : "",
      typeof property["description"] === "string" ? property["description"] : "",
    ];
    return [`| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`, ...inside(property, name)];
  });
}

/** The keys of an object, of the items of a list, of the values of a map, and of each kind that a value may be. */
function inside(property: JsonObject, name: string): readonly string[] {
  const own = rowsOf(property, `${name}.`);
  const items = isJsonObject(property["items"]) ? inside(property["items"], `${name}[]`) : [];
  const patterns = isJsonObject(property["patternProperties"])
    ? Object.values(property["patternProperties"])
    : [];
  const values = patterns.filter(isJsonObject).flatMap((value) => inside(value, `${name}.<name>`));
  const branches: readonly Json[] = Array.isArray(property["anyOf"]) ? property["anyOf"] : [];
  const each = branches.filter(isJsonObject).flatMap((branch) => inside(branch, name));
  return [...new Set([...own, ...items, ...values, ...each])];
}

const SIMPLE: Readonly<Record<string, string>> = {
  string: "string",
  integer: "integer",
  number: "number",
  boolean: "true or false",
  object: "object",
  array: "list",
};

function typeOf(property: JsonObject): string {
  const named = property[NAMED];
  if (typeof named === "string") return named.endsWith("_step") ? "step" : "locator";
  if (property["x-expression"] !== undefined) return "expression";
  if (property["x-template"] !== undefined) return "template";
  if (property["const"] !== undefined) return `\`${JSON.stringify(property["const"])}\``;
  if (Array.isArray(property["enum"]))
    return property["enum"].map((each) => `\`${String(each)}\``).join(", ");
  if (Array.isArray(property["anyOf"]))
    return [...new Set(property["anyOf"].filter(isJsonObject).map(typeOf))].join(" or ");
  if (property["type"] === "array" && isJsonObject(property["items"]))
    return `list of ${typeOf(property["items"])}`;
  return typeof property["type"] === "string" ? (SIMPLE[property["type"]] ?? property["type"]) : "any value";
}
