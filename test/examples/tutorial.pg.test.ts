/** docs/tutorial.md is followed to the letter: its files are written, its commands run, and what it shows is compared. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import { openProgram } from "../browser/program.ts";
import { submitHostedForm } from "../caller.ts";
import { environmentOf, observe, ROOT, type Running } from "../cli/program.ts";
import { needsCurl } from "../curl.ts";
import { createTestDatabase } from "../database.ts";

interface Fence {
  readonly language: string;
  readonly word: string;
  readonly text: string;
}

const PAGE = readFileSync(join(ROOT, "docs/tutorial.md"), "utf8");
const FENCES: readonly Fence[] = [...PAGE.matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)].map(
  ([, language, word, text]) => ({ language: must(language, ""), word: word ?? "", text: must(text, "") }),
);
const TRIES = 600;
/** Each of them starts a shell and curl. */
const TRY_EACH_MS = 200;
/** What the reader copies from an answer, by the name under which the page keeps it. */
const COPIED: Readonly<Record<string, RegExp>> = {
  KEY: /lk_[0-9A-Za-z_]+/,
  SESSION: /"id":"([^"]+)"/,
  CREDENTIAL: /cred_[0-9A-Za-z]+/,
  RUN: /run_[0-9A-Za-z]+/,
};

test("the tutorial's files and commands do what it shows", needsCurl, async () => {
  await using opened = new AsyncDisposableStack();
  const database = await createTestDatabase();
  opened.defer(database.drop);
  const folder = mkdtempSync(join(tmpdir(), "latchkey-tutorial-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const program = await openProgram();
  opened.defer(() => program.remove());
  for (const name of ["latchkey", "node_modules", "examples"])
    symlinkSync(join(ROOT, name), join(folder, name));
  const environment: Record<string, string> = environmentOf({
    DATABASE_URL: database.connectionString,
    LATCHKEY_DATA_DIR: join(folder, "data"),
    LATCHKEY_PORT: "0",
    PORTAL_PORT: "0",
    LATCHKEY_BROWSER: program.path,
  });
  const actual = new Map<string, string>();
  const asHere = (text: string): string =>
    [...actual].reduce((replaced, [shown, here]) => replaced.replaceAll(shown, here), text);
  const answers: string[] = [];

  const start = async (script: string, url: string): Promise<string> => {
    const child = spawn("bash", ["-c", `exec ${script}`], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const running: Running = observe(child);
    opened.defer(async () => {
      child.kill("SIGTERM");
      await running.ended;
    });
    const first = await running.line(/http:/);
    actual.set(url, must(/http:\/\/[^\s"]+:\d+/.exec(first)?.[0], first));
    return first;
  };

  const run = async (fence: Fence): Promise<string> => {
    const script = asHere(fence.text).replace(/^export (\w+)=….*$/gm, (_line, name: string) => {
      const pattern = must(COPIED[name], name);
      const match = answers
        .map((each) => pattern.exec(each))
        .filter((each) => each !== null)
        .at(-1);
      environment[name] = must(match?.[1] ?? match?.[0], `${name} in ${answers.at(-1)}`);
      return "";
    });
    for (const [, name, value] of script.matchAll(/^export (\w+)=(.+)$/gm))
      environment[must(name, "name")] = must(value, "value");
    for (let tries = 0; ; tries++) {
      const child = spawn("bash", ["-e", "-c", script], {
        cwd: folder,
        env: environment,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const { code, stdout, stderr } = await observe(child).ended;
      assert.equal(code === 0, fence.word !== "fails", `${script}\n${stdout}${stderr}`);
      const until = /^until=(.+)/.exec(fence.word)?.[1];
      if (until === undefined || stdout.includes(`"${until}"`) || tries > TRIES)
        return `${stdout}\n${stderr}`;
      await sleep(TRY_EACH_MS);
    }
  };

  for (const fence of FENCES) {
    const terminal = /^terminal=(\w+)/.exec(fence.word)?.[1];
    if (fence.language === "yaml") {
      const file = join(folder, must(/^file=(\S+)/.exec(fence.word)?.[1], fence.text));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, asHere(fence.text));
    } else if (fence.language === "text") assertShown(asHere(fence.text), must(answers.at(-1), "an answer"));
    else if (terminal !== undefined)
      answers.push(
        await start(fence.text.trim(), `http://127.0.0.1:${terminal === "portal" ? "4600" : "8080"}`),
      );
    else answers.push(await run(fence));
    const hosted =
      fence.language === "text" && /"hosted_url":"([^"]+)"/.exec(must(answers.at(-1), "an answer"))?.[1];
    if (hosted) {
      const login = { username: "demo", password: "correct horse battery staple" };
      const { status } = await submitHostedForm(hosted, login);
      assert.equal(status, 303, "the form leads on");
    }
  }
});

/** Each line stands in the output, in this order; `…` is anything. */
function assertShown(shown: string, output: string): void {
  let rest = output;
  for (const line of shown.split("\n").filter((each) => each.trim() !== "")) {
    const pattern = line.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const found = new RegExp(pattern.join(".*")).exec(rest);
    assert.ok(found, `the page shows\n  ${line}\nbut there was\n${rest}`);
    rest = rest.slice(found.index + found[0].length);
  }
}
