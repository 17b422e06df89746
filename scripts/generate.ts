/**
 * Writes every generated file of `scripts/generate/registry.ts`.
 * `--check` writes nothing: it lists the files that differ and exits with 1. Files that .gitattributes does not mark as
 * generated are a failure in both cases.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { matchesGlob } from "node:path/posix";
import { parseArgs } from "node:util";
import type { Generated } from "./generate/generated.ts";
import { GENERATED, ROOT } from "./generate/registry.ts";

const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } });

/** The text that a stale file should have; undefined when it is up to date. */
async function staleText({ path, content }: Generated): Promise<string | undefined> {
  const wanted = await content();
  if (wanted === undefined) return undefined;
  const present = await readFile(new URL(path, ROOT), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return present === wanted ? undefined : wanted;
}

const marks = (await readFile(new URL(".gitattributes", ROOT), "utf8"))
  .split("\n")
  .flatMap((line) => /^(\S+) .*\blinguist-generated\b/.exec(line)?.[1] ?? []);
const unmarked = GENERATED.filter(
  ({ path, isPart }) => isPart !== true && !marks.some((mark) => matchesGlob(path, mark)),
);
if (unmarked.length > 0) {
  console.error(
    `Mark as linguist-generated in .gitattributes: ${unmarked.map(({ path }) => path).join(", ")}`,
  );
  process.exitCode = 1;
}

const stale: string[] = [];
for (const generated of GENERATED) {
  const text = await staleText(generated);
  if (text === undefined) continue;
  stale.push(generated.path);
  if (values.check) continue;
  const file = new URL(generated.path, ROOT);
  await mkdir(new URL(".", file), { recursive: true });
  await writeFile(file, text);
}

if (stale.length === 0) {
  console.log(`${GENERATED.length} generated files are up to date`);
} else if (values.check) {
  console.error(`Not what the sources generate:\n${stale.map((path) => `  ${path}`).join("\n")}`);
  console.error("Run `npm run generate` and commit the result.");
  process.exitCode = 1;
} else {
  console.log(stale.map((path) => `written: ${path}`).join("\n"));
}
