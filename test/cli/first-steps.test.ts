// What newcomers met in their first hour.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { freePort } from "../free-port.ts";
import { runCommand } from "../service-process.ts";
import { newFolder, ROOT } from "./program.ts";

const folder = newFolder();
after(() => rmSync(folder, { recursive: true, force: true }));
const MAIN = join(ROOT, "src/main.mjs");

test("recordings among documents are passed over, and are no documents when there is nothing else", async () => {
  const documents = join(folder, "documents");
  mkdirSync(documents);
  const recording = join(documents, "golden.json");
  writeFileSync(recording, '{\n  "latchkey_recording": 1,\n  "exchanges": []\n}\n');
  const nothing = await runCommand(["validate", "-f", documents], {});
  assert.deepEqual(
    [nothing.code, /No YAML or JSON file but recordings under/.test(nothing.stderr)],
    [1, true],
  );
  writeFileSync(join(documents, "account.yaml"), "account: acme\n");
  const folderOnly = await runCommand(["validate", "-f", documents], {});
  assert.deepEqual([folderOnly.code, folderOnly.stdout], [0, "1 document is valid.\n"]);
  const globbed = await runCommand(["validate", "-f", recording, join(documents, "account.yaml")], {});
  assert.equal(globbed.code, 0, globbed.stderr);
});

test("a reader that has seen enough ends no command with a stack trace", () => {
  const program = `"${process.execPath}" --disable-warning=ExperimentalWarning "${MAIN}" schema`;
  const { stdout, stderr, status } = spawnSync("bash", ["-c", `set -o pipefail; ${program} | head -c 1`], {
    encoding: "utf8",
  });
  assert.deepEqual([stdout, stderr, status], ["{", "", 0]);
});

/** `latchkey …` as a user without a name and a home. */
function asNobody(environment: Record<string, string>, ...command: string[]): string {
  const { stderr } = spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", MAIN, ...command],
    {
      uid: 23_456,
      gid: 23_456,
      encoding: "utf8",
      timeout: 60_000,
      env: { PATH: process.env["PATH"] ?? "", ...environment },
    },
  );
  return stderr;
}
const isRoot = process.getuid?.() === 0;
const ONLY_ROOT = "only root can become another user";

test("a user without a name and without a home, as in a container, is one", async (t) => {
  if (!isRoot) return t.skip(ONLY_ROOT);
  // What asked for a home was loaded before the database is asked.
  const stderr = asNobody({ DATABASE_URL: `postgres://127.0.0.1:${await freePort()}/none` }, "runs", "list");
  assert.match(stderr, /^The database of DATABASE_URL can't be opened \(connect ECONNREFUSED/);
  return undefined;
});

test("a data folder that can't be made is named, with the setting that names another", (t) => {
  if (!isRoot) return t.skip(ONLY_ROOT);
  chmodSync(folder, 0o755);
  assert.match(
    asNobody({ LATCHKEY_DATA_DIR: join(folder, "data") }, "init"),
    /^The data folder \S+\/data can't be created here \(EACCES\)\. Set LATCHKEY_DATA_DIR to a folder that this user may write to\.$/m,
  );
  return undefined;
});
