// Node resolves links, and looks for packages in the folders above: the permissions of the threads must follow.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";

const root = dirname(dirname(import.meta.dirname));
const PROGRAM = `
const { runParseJob } = await import(process.argv[1] + "/src/nodes/parse/run-parse-job.ts");
const columns = [{ name: "cell", css: null, attribute: null }];
const job = { format: "html", text: "<table><tr><td>one</table>", rows: "td", columns, within: null, empty: null };
console.log(JSON.stringify((await runParseJob(job, "the HTML", AbortSignal.timeout(20_000))).rows));
process.exit(0);`;

/** The program's files in a folder, and the packages, as a link, in another. */
function install(context: TestContext, program: string, packages: string): string {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-confined-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const installed = join(folder, program);
  mkdirSync(installed, { recursive: true });
  for (const part of ["src", "package.json"])
    cpSync(join(root, part), join(installed, part), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, packages));
  return installed;
}

for (const [name, program, packages] of [
  ["node_modules is a link", "program", "program/node_modules"],
  ["the packages are in a folder above the program", "packages/program", "node_modules"],
] as const)
  test(`HTML is parsed in a confined thread when ${name}`, (context) => {
    const installed = install(context, program, packages);
    const printed = execFileSync(process.execPath, ["--input-type=module", "--eval", PROGRAM, installed], {
      encoding: "utf8",
      // What is below the working directory can always be read.
      cwd: installed,
    });
    assert.equal(printed, '[["one"]]\n');
  });
