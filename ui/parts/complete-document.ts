import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";

/** The parts of a JSON Schema that completion uses. */
interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly (string | number | boolean)[];
  readonly const?: string | number | boolean;
  readonly type?: string;
  readonly description?: string;
}

/** The position of the cursor: the keys above it, and its siblings in the same object. */
interface Place {
  readonly path: readonly string[];
  /** The text of the object that contains the cursor, as far as it exists. */
  readonly beside: string;
}

const KEY = /^(\s*(?:- )*)([\w$.-]+):/;

const indentOf = (line: string): number => /^(\s*(?:- )*)/.exec(line)?.[1]?.length ?? 0;

/** Found by indentation, as in block style, and by the innermost open `{` of the line. */
function findPlace(lines: readonly string[], at: number, before: string): Place {
  const flow = /(?:^|[\s[{,])(?:([\w-]+):\s*)?\{([^{}]*)$/.exec(before);
  let indent = flow ? indentOf(before) + (flow[1] === undefined ? 1 : 0) : indentOf(before);
  const path: string[] = flow?.[1] === undefined ? [] : [flow[1]];
  const beside = flow ? (flow[2] ?? "") : siblingLines(lines, at, indent);
  if (flow?.[1] !== undefined) indent = indentOf(before);
  for (let index = at - 1; index >= 0 && indent > 0; index--) {
    const line = lines[index] ?? "";
    const [, lead = "", key] = KEY.exec(line) ?? [];
    // A list may have the same indentation as its key.
    const isParent = lead.length < indent || (lead.length === indent - 2 && /^\s*- /.test(lines[at] ?? ""));
    if (key === undefined || !isParent) continue;
    path.unshift(key);
    indent =
      lead.replace(/- /g, "  ").length === lead.length && !lead.includes("- ")
        ? lead.length
        : lead.indexOf("-");
  }
  return { path, beside };
}

/** The lines of the same object: those with the same indentation and no other item in between. */
function siblingLines(lines: readonly string[], at: number, indent: number): string {
  const own: string[] = [lines[at] ?? ""];
  for (let index = at; index > 0 && !/^\s*- /.test(lines[index] ?? ""); index--) {
    const above = lines[index - 1] ?? "";
    if (indentOf(above) < indent) break;
    own.unshift(above);
  }
  for (let index = at + 1; index < lines.length; index++) {
    const below = lines[index] ?? "";
    if (indentOf(below) < indent || /^\s*- /.test(below)) break;
    own.push(below);
  }
  return own.join("\n");
}

/** Completes keys and values of a document, using the schema that `latchkey schema` prints. */
export function completeDocument(root: object) {
  const schema = root as Schema;
  const follow = (part: Schema | undefined): Schema | undefined =>
    part?.$ref === undefined ? part : schema.$defs?.[part.$ref.replace("#/$defs/", "")];
  const typed = (name: string | undefined, beside: string): Schema | undefined => {
    const type = /(?:^|[\s,{])type:\s*([\w-]+)/m.exec(beside)?.[1];
    return (type !== undefined && schema.$defs?.[`${name}_${type}`]) || follow({ $ref: `#/$defs/${name}` });
  };
  /** For a list, the schema of its items; for a node or a login, the schema of its type. */
  const inside = (part: Schema | undefined, beside: string): Schema | undefined => {
    const item = part?.items ?? part?.anyOf?.find((each) => each.items)?.items ?? part;
    const name = item?.$ref?.replace("#/$defs/", "");
    return name === "node" || name === "login" ? typed(name, beside) : follow(item);
  };

  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[\w-]*/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    const { lines, at } = documentAround(context);
    const before = (lines[at] ?? "").slice(0, context.pos - context.state.doc.lineAt(context.pos).from);
    const value = /([\w-]+):\s+[\w-]*$/.exec(before);
    const { path, beside } = findPlace(lines, at, before);
    const kind = lines.some((line) => line.startsWith("strategy:"))
      ? "strategy"
      : lines.some((line) => line.startsWith("blueprint:"))
        ? "blueprint"
        : "account";
    let here = schema.$defs?.[kind];
    path.forEach((key, index) => {
      here = inside(here?.properties?.[key], index === path.length - 1 ? beside : "");
    });
    const options = value
      ? valuesOf(follow(here?.properties?.[value[1] ?? ""]), value[1] ?? "", lines)
      : keysOf(here, beside);
    return options.length === 0 ? null : { from: word.from, options, validFor: /^[\w-]*$/ };
  };
}

/** The document that contains the cursor. */
function documentAround({ state, pos }: CompletionContext): {
  readonly lines: readonly string[];
  readonly at: number;
} {
  const all = state.doc.toString().split("\n");
  const at = state.doc.lineAt(pos).number - 1;
  const isEnd = (line: string): boolean => line.startsWith("---");
  const start = all.findLastIndex((line, index) => index < at && isEnd(line)) + 1;
  const end = all.findIndex((line, index) => index > at && isEnd(line));
  return { lines: all.slice(start, end < 0 ? undefined : end), at: at - start };
}

const isThere = (key: string, beside: string): boolean =>
  new RegExp(`(?:^|[\\s,{])${key}:`, "m").test(beside);

function keysOf(here: Schema | undefined, beside: string): readonly Completion[] {
  return Object.entries(here?.properties ?? {})
    .filter(([key]) => !isThere(key, beside))
    .map(([key, { description }]) => ({
      label: key,
      apply: `${key}: `,
      type: "property",
      ...(description !== undefined && { info: description }),
    }));
}

function valuesOf(part: Schema | undefined, key: string, lines: readonly string[]): readonly Completion[] {
  if (key === "from")
    return lines
      .flatMap((line) => [...line.matchAll(/(?:^|[\s,{])id:\s*([\w-]+)/g)].map(([, id = ""]) => id))
      .map((label) => ({ label, type: "variable" }));
  const parts = [part ?? {}, ...(part?.anyOf ?? [])];
  const values = parts.flatMap(({ enum: given = [], const: one, description, type }) => [
    ...given.map((label) => ({ label: String(label) })),
    ...(one === undefined
      ? []
      : [{ label: String(one), ...(description !== undefined && { info: description }) }]),
    ...(type === "boolean" ? [{ label: "true" }, { label: "false" }] : []),
  ]);
  return values.map((each) => ({ ...each, type: "enum" }));
}
