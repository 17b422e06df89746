// What `npm run check` says of citations, links and words: it finds a wrong one, and says where.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import {
  anchorsIn,
  checkCitations,
  checkLinks,
  interfaceParts,
  type Citable,
} from "../scripts/prose/citations.ts";
import { checkWords } from "../scripts/prose/words.ts";

const KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

const ROOT = new URL("../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");

const pages: Readonly<Record<string, string>> = {
  "docs/api.md": read("docs/api.md"),
  "docs/decisions/0007-why-calls-are-grouped.md": read("docs/decisions/0007-why-calls-are-grouped.md"),
};
const citable: Citable = {
  exists: (path) => path === "src/main.ts",
  anchorsOf: (page) => (pages[page] === undefined ? undefined : anchorsIn(pages[page])),
  decisions: new Set(["0007"]),
  interfaceParts: interfaceParts(read("spec/interface.md")),
};

// Put together here, so that this file cites nothing wrong itself.
const spec = (rest: string): string => `Spec${","} ${rest}`;
const page = (rest: string): string => `docs${"/"}${rest}`;
const old = (rest: string): string => `design${","} page ${rest}`;
const problems = (text: string, file = "src/x.ts"): readonly string[] =>
  checkCitations({ file, text }, citable).map(({ line, problem }) => `${line} ${problem}`);

test("citations of what exists are right, in every form", () => {
  const text = [
    `// ${page("decisions/0007")}; ${page("decisions/0007-why-calls-are-grouped.md")}.`,
    `/** ${page("api.md")}, ${page("api.md#order-of-checks")}, ${page("api.md#outside-apiv1")}. */`,
    `// ${spec("Idempotency 4: same key.")} ${spec("Credential session `status`")}; ${spec("POST /credential-sessions.")}`,
    `// ${spec("Top-level key routing: the table.")} ${spec("GET /blueprint-runs/{runId}/results 3")}`,
    `/**\n * Spec${","}\n * Run status projection: closed.\n */`,
  ].join("\n");
  assert.deepEqual(problems(text), []);
});

test("a citation of what does not exist is found, with its line", () => {
  assert.deepEqual(problems(`\n// ${page("decisions/0999")}`), [
    "2 there is no decision 0999 in docs/decisions/",
  ]);
  assert.deepEqual(problems(`// ${page("nowhere.md")}`), [`1 there is no ${page("nowhere.md")}`]);
  assert.deepEqual(problems(`// ${page("api.md#not-there")}`), [
    `1 ${page("api.md")} has no heading #not-there`,
  ]);
  assert.deepEqual(problems(`// ${spec("Nothing: x")}`), ['1 the interface has no section "Nothing"']);
  assert.deepEqual(problems(`// ${spec("Idempotencyx 4")}`), [
    '1 the interface has no section "Idempotencyx 4"',
  ]);
  assert.deepEqual(problems(`// ${spec("Idempotency 9: x")}`), [
    '1 "Idempotency" of the interface has no rule 9',
  ]);
});

test("a page that is not in the repository is not cited, over a line's end neither", () => {
  for (const text of [`// ${old("6, T1.")}`, ` * x (${old("3")})`, ` * x (design${","}\n * page 6, 5.8)`])
    assert.match(problems(text)[0] ?? "", /^1 cites a page that is not in/);
  assert.deepEqual(problems(`-- ${old("6")}`, "src/db/migrations/0007_audit.sql"), []);
  assert.equal(problems(`-- ${old("6")}`, "src/db/migrations/0999_new.sql").length, 1);
});

test("links lead to files and headings that exist; code is no link", () => {
  const links = (text: string): readonly string[] =>
    checkLinks({ file: page("x.md"), text }, citable).map(({ line, problem }) => `${line} ${problem}`);
  assert.deepEqual(
    links(
      "[a](api.md) [b](api.md#limits) [c](../src/main.ts) [d](https://x.example/y.md)\n`[e](no.md)`\n```\n[f](no.md)\n```",
    ),
    [],
  );
  assert.deepEqual(links("one\n[a](no.md) and ![b](no.png)"), [
    `2 link: there is no ${page("no.md")}`,
    "2 link: there is no docs/no.png",
  ]);
  assert.deepEqual(links("[a](api.md#no)"), ["1 link: docs/api.md has no heading #no"]);
  assert.deepEqual(links("[a](#no)"), [`1 link: there is no ${page("x.md")}`]);
});

test("the id of a heading is GitHub's, and a second one of its name has a number", () => {
  assert.deepEqual(
    [...anchorsIn("# A `b` c/d!\n## As measured\n```\n# no heading\n```\n## As measured\n### Ünder_score")],
    ["a-b-cd", "as-measured", "as-measured-1", "ünder_score"],
  );
});

test("odd words are found with the better ones beside them, where they are odd", () => {
  const words = (file: string, text: string): readonly string[] =>
    checkWords({ file, text }).map(({ line, problem }) => `${line} ${problem}`);
  assert.deepEqual(words("src/lib/x.ts", "\n// Whoever calls it."), [
    '2 "Whoever" is an odd word of ours; better: `anyone who`, or say who it is',
  ]);
  assert.equal(words(page("x.md"), "It ends. What is left is removed.").length, 1);
  assert.equal(words("ui/x.tsx", '"Nine of ten"').length, 1);
  // A question, the beginning of a description, and a comment are none.
  assert.deepEqual(words(page("x.md"), "What is left? It is removed. What is written down"), []);
  assert.deepEqual(words("src/lib/x.ts", "// What is left is removed."), []);
  assert.deepEqual(words("src/db/migrations/0001_x.sql", "-- whoever"), []);
});

test("the index of the decisions lists each, with its title", () => {
  const index = read("docs/decisions/README.md");
  const rows = [...index.matchAll(/^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \|$/gm)];
  assert.ok(rows.length >= 33);
  for (const [, number = "", file = "", title = ""] of rows) {
    assert.ok(file.startsWith(`${number}-`), file);
    assert.equal(read(`docs/decisions/${file}`).split("\n")[0], `# ${number}. ${title}`);
  }
});

test("CHANGELOG has its sections in Keep a Changelog's order, and entries of one or two lines", () => {
  const [, ...releases] = read("CHANGELOG.md").split(/^## /m);
  for (const release of releases) {
    const kinds = [...release.matchAll(/^### (.+)$/gm)].map(([, kind = ""]) => kind);
    assert.deepEqual(
      kinds,
      KINDS.filter((kind) => kinds.includes(kind)),
    );
    const entries = release.split(/^- /m).slice(1);
    const long = entries.filter((entry) =>
      entry.split(/\n(?! )/, 1)[0]?.includes("\n  ", entry.indexOf("\n") + 1),
    );
    assert.deepEqual(long, []);
  }
});

test("the workflow runs the two commands of the README, and nothing else", () => {
  const workflow = parse(read(".github/workflows/test.yml")) as {
    jobs: Record<string, { steps: { uses?: string; run?: string }[] }>;
  };
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);
  const shown = /```sh\n(.*?)```/s.exec(read("README.md"))?.[1] ?? "";
  assert.deepEqual(
    steps.flatMap(({ run }) => (run === undefined ? [] : [run.replace(" -- --once", "")])),
    shown.split("\n").flatMap((line) => /^npm [a-z ]+(?=  )/.exec(line)?.[0].trim() ?? []),
  );
  assert.equal(steps.filter(({ uses }) => uses !== undefined).length, 1, "the checkout");
});

test("every file and folder that ARCHITECTURE names in a code span is there", () => {
  const spans = [...read("ARCHITECTURE.md").matchAll(/`([\w.-]+\/[\w./-]*)`/g)].map(([, path = ""]) => path);
  const isThere = (path: string): boolean =>
    ["src/", ""].some((from) => existsSync(new URL(from + path, ROOT)));
  assert.ok(spans.length > 60, `${spans.length} were found`);
  assert.deepEqual(
    spans.filter((path) => !isThere(path)),
    [],
  );
});
