/** A place inside a document, e.g. `["nodes", 3, "request", "url"]`. */
export type ConfigPath = readonly (string | number)[];

/** A problem at a place of one document. `key`: the key itself is wrong; otherwise its value is. */
export interface ConfigFinding {
  readonly path: ConfigPath;
  readonly at?: "key" | "value" | undefined;
  readonly message: string;
}

/** A problem in one file. Lines and columns begin with 1. Messages state the problem and the remedy. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Like `nodes[3].request.url`; empty for a whole file or document. */
  readonly path: string;
  readonly message: string;
}

/** `nodes[3].request.url`; names that need it are put in brackets: `query["page[size]"]`. */
export function formatPath(path: ConfigPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(part)) text += text === "" ? part : `.${part}`;
    else text += `[${JSON.stringify(shorten(part))}]`;
  }
  return text;
}

/** `file:line:column path message`: docs/accounts.md#problems. */
export function formatProblem({ file, line, column, path, message }: ConfigProblem): string {
  return `${file}:${line}:${column} ${path === "" ? "" : `${path} `}${message}`;
}

/** Like formatProblem, for warnings. */
export const formatWarning = (warning: ConfigProblem): string => `warning: ${formatProblem(warning)}`;

/** Sorted by file, line and column, without duplicates. */
export function sortProblems(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  const once = new Map(problems.map((problem) => [formatProblem(problem), problem]));
  return [...once.values()].sort(
    (a, b) =>
      compareTexts(a.file, b.file) || a.line - b.line || a.column - b.column || compareTexts(a.path, b.path),
  );
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Quotes the author's text in a message: one line, shortened. */
export function shorten(text: string, charactersMax = 60): string {
  const line = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ");
  return line.length > charactersMax ? `${line.slice(0, charactersMax)}…` : line;
}

export function quote(text: string): string {
  return `\`${shorten(text)}\``;
}

/** `a`, `b`, `c` */
export function quoteList(names: Iterable<string>): string {
  return [...names].map(quote).join(", ");
}
