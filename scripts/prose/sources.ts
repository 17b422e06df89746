import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A file of the repository that people write, with its text. */
export interface Source {
  /** Relative to the root of the repository, with `/`. */
  readonly file: string;
  readonly text: string;
}

const PATTERNS = [
  "{src,ui,sdk,test,conformance,scripts,bench,examples}/**/*.{ts,tsx,mjs,md,yaml,css,sql}",
  "docs/**/*.md",
  "spec/*.md",
  "*.md",
  ".github/**/*.md",
  "oxlint.config.ts",
];
/** Packages, what is built, the generated schema, and frozen installations of earlier versions. */
const LEFT_OUT =
  /(?:^|\/)(?:node_modules|built|dist)\/|^src\/db\/migrations\/schema\.sql$|^test\/fixtures\/upgrade\//;

export function readSources(root: string): readonly Source[] {
  return globSync(PATTERNS, {
    cwd: root,
    exclude: (path) => /(?:^|\/)(?:node_modules|built|dist)$/.test(path),
  })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => !LEFT_OUT.test(file))
    .toSorted()
    .map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }));
}

/** Something that is wrong at a line, with what to do about it. */
export interface Finding {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly problem: string;
}

export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
