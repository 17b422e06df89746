// docs/custom-nodes.md: an operator's node type is one file that exports `defineNode({ type, schema, run })`, named in the settings.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { addNodeFiles } from "#nodes/registry.ts";
import { latchkey, newFolder, ROOT } from "../cli/program.ts";
import { problemsOf } from "../config/problems-of.ts";

const folder = newFolder();
after(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const blueprint = (node: string): string => `account: acme
---
blueprint: own
account: acme
nodes:
  - { id: words, type: input, refKey: words }
  - { id: rows, type: parse, from: words, format: json }
  - { id: own, from: rows, ${node} }
  - { id: out, type: output, refKey: out, from: own }
`;
const problems = (node: string): string => problemsOf(blueprint(node)).join("\n");

const IMPORT = 'import { defineNode, EXPRESSION } from "latchkey/node";\n';
const RUN = 'run: async (context) => ({ kind: "records", batches: context.from[0].batches })';
const plain = (type: string, properties = '{ field: { type: "string" } }', more = "") =>
  `${IMPORT}export const node = defineNode({ type: "${type}", schema: { type: "object", required: ["field"], properties: ${properties} }, ${RUN}${more} });\n`;

test("a type in a file outside of the repository, in JavaScript or TypeScript, is checked like a built-in one", async () => {
  const marked = '{ field: { type: "string", [EXPRESSION]: "record" }, more: { type: "integer" } }';
  const own = file("own.js", plain("own", marked));
  const typed = file(
    "typed.ts",
    plain("typed").replace("export const node =", "const size: number = 1;\nexport default"),
  );
  const added = await addNodeFiles([own, typed]);
  assert.deepEqual([...added.values()], ["own", "typed"]);
  assert.equal(problems("type: own, field: total * 2"), "");
  assert.equal(problems("type: typed, field: total"), "");

  const misspelt = problems("type: own, feild: 1, more: x");
  assert.match(misspelt, /^8:\d+ nodes\[2\]\.feild unknown key `feild`; did you mean `field`\?/m);
  assert.match(misspelt, /nodes\[2\] the key `field` is missing/);
  assert.match(misspelt, /nodes\[2\]\.more must be a whole number/);
  assert.match(problems("type: own, field: $credential.x"), /secrets are never in scope/);
  assert.match(problems('type: own, field: "total *"'), /nodes\[2\]\.field the expression/);
});

test("a type that no file gives is named by place, with the setting", () => {
  assert.match(
    problems("type: absent, field: total"),
    /^8:\d+ nodes\[2\]\.type unknown node type `absent`; .*; a type of your own needs its file in LATCHKEY_NODE_FILES$/m,
  );
});

test("every mistake of the files is named with its file and the remedy, all at once", async () => {
  const mistakes: readonly (readonly [file: string, says: RegExp])[] = [
    [join(folder, "missing.js"), /the file does not exist; correct the path, or remove it from the list\./],
    [file("broken.js", "export const node = {"), /it can't be loaded \(SyntaxError: .*\); fix the file\./],
    [file("throwing.js", 'throw new Error("no");'), /it can't be loaded \(Error: no\); fix the file\./],
    [
      file("silent.js", "export const other = 1;"),
      /it does not export `node`; write `export const node = defineNode/,
    ],
    [file("misnamed.js", plain("named")), /it defines the type `named`, so its name must be named\.js/],
    [file("Bad-Name.js", plain("Bad-Name")), /the type "Bad-Name" must have lower-case letters/],
    [file("map.js", plain("map")), /the type `map` is built in; choose another name\./],
    [file("browser.js", plain("browser")), /the type `browser` is built in/],
    [
      file("wrong_schema.js", plain("wrong_schema", '{ field: { type: "strin" } }')),
      /`schema`: not a JSON Schema/,
    ],
    [
      file("taken.js", plain("taken", "{ from: {} }")),
      /`schema` has the key `from`, which every node has already/,
    ],
    [
      file("scoped.js", plain("scoped", '{ field: { type: "string", [EXPRESSION]: "login" } }')),
      /`schema` marks an expression with the scope "login"; use one of run, record/,
    ],
    [file("idle.js", plain("idle").replace("run:", "walk:")), /the node has no function `run`/],
    [
      file("gate.js", plain("gate", "{}", ", isGate: true")),
      /only the built-in `review` is a gate; remove `isGate`/,
    ],
    [
      file("turns.js", plain("turns", "{}", ", hasTurns: true")),
      /only the built-in `loop` has iterations; remove `hasTurns`/,
    ],
    [
      file("final.js", plain("final", "{}", ', gives: "results"')),
      /only the built-in `output` can write results/,
    ],
    [file("twice.mjs", plain("twice")), /^$/],
    [file("twice.js", plain("twice")), /already defines the type `twice`; choose another name\./],
  ];
  const { code, stdout, stderr } = await latchkey(
    ["validate", "-f", file("blueprint.yaml", blueprint("type: own"))],
    {
      LATCHKEY_NODE_FILES: mistakes.map(([path]) => path).join(","),
    },
  );
  assert.equal(code, 1);
  assert.equal(stdout, "");
  const lines = stderr.trimEnd().split("\n");
  assert.equal(lines[0], "LATCHKEY_NODE_FILES has problems:");
  for (const [path, says] of mistakes) {
    const mine = lines
      .filter((line) => line.startsWith(`  ${path}: `))
      .map((line) => line.slice(path.length + 4));
    assert.match(mine.join("\n"), says, path);
  }
});

test("`latchkey schema` gives editors the type's keys", async () => {
  const own = join(ROOT, "examples/nodes/running_total.ts");
  const { stdout } = await latchkey(["schema"], { LATCHKEY_NODE_FILES: own });
  const definition = JSON.parse(stdout).$defs.node_running_total;
  assert.equal(definition.description, "Adds up a number from record to record.");
  assert.deepEqual(definition.required, ["id", "type", "of", "as"]);
});

test("the files in docs/custom-nodes.md are some", async () => {
  const page = readFileSync(join(ROOT, "docs/custom-nodes.md"), "utf8");
  const written = [...page.matchAll(/```ts\n(\/\/ nodes\/(\w+\.ts)\n.*?)```/gs)];
  assert.deepEqual(
    written.map(([, , name]) => name),
    ["shout.ts", "motd.ts"],
  );
  await addNodeFiles(written.map(([, text = "", name = ""]) => file(name, text)));
  const line = /```yaml\n- \{ id: \w+, (.*?), from: \w+, (.*?) \}/s.exec(page);
  assert.equal(problems(`${line?.[1]}, ${line?.[2]}`), "");
});
