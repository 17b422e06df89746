import type { Document, LineCounter, Node } from "yaml";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import {
  formatPath,
  shorten,
  sortProblems,
  type ConfigPath,
  type ConfigProblem,
} from "#domain/config-problem.ts";
import { openYaml } from "./open-yaml.ts";
import { keyText, TooMuchYaml, yamlToJson, type AliasTargets, type ExpansionBudget } from "./yaml-to-json.ts";

/** A configuration file is written by hand; one over 1 MiB is a mistake. */
const FILE_CHARACTERS_MAX = 1_048_576;
/** After the first few, the errors are consequences of the earlier ones. */
const SYNTAX_ERRORS_MAX = 10;

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** One document of one file: a JSON object and the positions of its parts. */
export interface SourceDocument {
  readonly file: string;
  readonly value: JsonObject;
  /** The source text, including comments. */
  readonly text: string;
  /** Of a key or of its value. A part that does not exist has the position of the nearest one around it. */
  position(path: ConfigPath, at?: "key" | "value"): Position;
}

/** Reads YAML or JSON files with several documents each. Never throws: every error is reported as a problem with its place. */
export function readDocuments(sources: readonly { readonly file: string; readonly text: string }[]): {
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly ConfigProblem[];
} {
  const read = sources.map(({ file, text }) => readFile(file, text));
  return {
    documents: read.flatMap((each) => each.documents),
    problems: sortProblems(read.flatMap((each) => each.problems)),
  };
}

function readFile(file: string, text: string): { documents: SourceDocument[]; problems: ConfigProblem[] } {
  const documents: SourceDocument[] = [];
  const problems: ConfigProblem[] = [];
  const lines = new (openYaml().LineCounter)();
  const report = (offset: number, path: ConfigPath, message: string) => {
    const { line, col } = lines.linePos(offset);
    problems.push({
      file,
      line: Math.max(line, 1),
      column: Math.max(col, 1),
      path: formatPath(path),
      message,
    });
  };
  if (text.length > FILE_CHARACTERS_MAX) {
    report(0, [], `the file is longer than ${FILE_CHARACTERS_MAX} characters; split it`);
    return { documents, problems };
  }
  const budget: ExpansionBudget = { valuesLeft: limits.jsonValuesMax };
  let end = 0;
  try {
    for (const parsed of parse(text, lines)) {
      // Comments before a document are outside of its range.
      const own = text.slice(end, parsed.range[2]);
      end = parsed.range[2];
      // After an error the parser has lost its place: its further messages are meaningless.
      const errors = [...parsed.errors, ...parsed.warnings].filter(
        ({ code }, index) => index === 0 || code !== "UNEXPECTED_TOKEN",
      );
      for (const error of errors.slice(0, SYNTAX_ERRORS_MAX))
        report(error.pos[0], [], explainSyntax(error, text));
      if (errors.length > 0) continue;
      const { value, targets, findings } = yamlToJson(parsed.contents, budget);
      for (const finding of findings) report(finding.offset, finding.path, finding.message);
      // `---` at the end of a file begins an empty document.
      if (value === null && findings.length === 0) continue;
      if (isJsonObject(value))
        documents.push(new LocatedDocument(file, value, own, parsed.contents, targets, lines));
      else if (findings.length === 0) report(parsed.contents?.range?.[0] ?? 0, [], NOT_AN_OBJECT);
    }
  } catch (error) {
    // The parser recurses: text that is nested some thousand levels deep overflows the stack.
    if (error instanceof TooMuchYaml) report(error.offset, [], error.message);
    else if (error instanceof RangeError) report(0, [], TOO_DEEP);
    else throw error;
  }
  return { documents, problems };
}

const TOO_DEEP = `nested deeper than ${limits.jsonDepthMax} levels`;
const NOT_AN_OBJECT = "a document must have keys; the first one is `account`, `strategy` or `blueprint`";

function parse(text: string, lineCounter: LineCounter): readonly Document.Parsed[] {
  const documents = openYaml().parseAllDocuments(text, {
    lineCounter,
    prettyErrors: false,
    schema: "core",
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    // Its own check compares every key with every other; ours is linear.
    uniqueKeys: false,
    logLevel: "error",
  });
  return Array.isArray(documents) ? documents : [];
}

function explainSyntax(
  error: { readonly code: string; readonly message: string; readonly pos: readonly number[] },
  text: string,
): string {
  const at = text.slice(error.pos[0], (error.pos[0] ?? 0) + 2);
  const before = text.slice(Math.max(0, (error.pos[0] ?? 0) - 1), error.pos[0]);
  if (error.code === "NON_STRING_KEY") {
    return at === "{ " || at === "{{" || before === "{"
      ? 'an expression in {{ }} must be in quotes: "{{ … }}"'
      : "a key must be text";
  }
  if (error.code === "TAG_RESOLVE_FAILED")
    return `tags are not supported: ${shorten(error.message)}; remove it, or put the text in quotes`;
  if (error.code === "RESOURCE_EXHAUSTION") return TOO_DEEP;
  if (error.code === "TAB_AS_INDENT") return "a tab can't indent YAML; use spaces";
  const isText = error.code === "UNEXPECTED_TOKEN" || error.code === "BLOCK_AS_IMPLICIT_KEY";
  return `YAML syntax: ${shorten(error.message, 200)}${isText ? "; text with special characters must be in quotes" : ""}`;
}

/** What separates a document from the one before it. */
const DOCUMENT_MARKS = /^(?:\s*(?:\.\.\.|---)[ \t]*\r?\n)+/;

class LocatedDocument implements SourceDocument {
  readonly file: string;
  readonly value: JsonObject;
  readonly text: string;
  readonly #contents: Node | null;
  readonly #targets: AliasTargets;
  readonly #lines: LineCounter;

  constructor(
    file: string,
    value: JsonObject,
    text: string,
    contents: Node | null,
    targets: AliasTargets,
    lines: LineCounter,
  ) {
    this.file = file;
    this.value = value;
    this.text = text.replace(DOCUMENT_MARKS, "");
    this.#contents = contents;
    this.#targets = targets;
    this.#lines = lines;
  }

  position(path: ConfigPath, at: "key" | "value" = "value"): Position {
    const { isAlias, isMap, isScalar, isSeq } = openYaml();
    let node = this.#contents;
    let offset = node?.range?.[0] ?? 0;
    for (const [depth, part] of path.entries()) {
      if (isAlias(node)) node = this.#targets.get(node) ?? null;
      const last = depth === path.length - 1;
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && keyText(key) === part);
        if (pair === undefined) break;
        const value = pair.value as Node | null;
        const keyOffset = (pair.key as Node).range?.[0] ?? offset;
        const empty =
          value?.range === undefined || value?.range === null || value.range[0] === value.range[1];
        offset = (last && at === "key") || empty ? keyOffset : (value.range?.[0] ?? keyOffset);
        node = value;
      } else if (isSeq(node)) {
        const item = node.items[Number(part)] as Node | null | undefined;
        if (item === undefined || item === null) break;
        offset = item.range?.[0] ?? offset;
        node = item;
      } else break;
    }
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }
}
