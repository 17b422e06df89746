// A hole in a parser of files that strangers have made: what its thread can reach, and whom it meets.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { ParseJob } from "#nodes/parse/parse-jobs.ts";
import { runParseJob, startParseThread } from "#nodes/parse/run-parse-job.ts";
import { pdf, textCell, xlsx } from "./office-files.ts";

const HTML: ParseJob = {
  format: "html",
  text: "<p>one</p>",
  rows: "p",
  columns: [{ name: "text", css: null, attribute: null }],
  within: null,
  empty: null,
};
const XLSX: ParseJob = { format: "xlsx", bytes: xlsx({ One: [textCell("A1", "name")] }), sheet: 1 };
const CALENDAR: ParseJob = { format: "icalendar", text: "BEGIN:VCALENDAR\nEND:VCALENDAR\n" };
const PDF: ParseJob = { format: "pdf", bytes: pdf([["one"]]), rows: null };

const parse = async (job: ParseJob): Promise<unknown> =>
  await runParseJob(structuredClone(job), "the file", new AbortController().signal);

const moduleOf = (code: string): URL => new URL(`data:text/javascript,${encodeURIComponent(code)}`);

async function answerOf(thread: Worker): Promise<any> {
  try {
    return await new Promise((resolve, reject) => thread.once("message", resolve).once("error", reject));
  } finally {
    await thread.terminate();
  }
}

test("code in a parse thread writes nothing, starts nothing, and reads no file of the machine", async () => {
  const written = join(tmpdir(), `latchkey-escaped-${process.pid}`);
  const tries: Readonly<Record<string, string>> = {
    write: `fs.writeFileSync(${JSON.stringify(written)}, "x")`,
    read: `fs.readFileSync("/etc/hostname")`,
    list: `fs.readdirSync("/proc/self")`,
    process: `execFileSync("true")`,
    thread: `new Worker("1", { eval: true })`,
    native: `process.dlopen({ exports: {} }, "/nonexistent.node")`,
    binding: `process.binding("fs")`,
  };
  const code = `import fs from "node:fs"; import { execFileSync } from "node:child_process";
    import { parentPort, Worker } from "node:worker_threads";
    const seen = { env: Object.keys(process.env).length };
    const attempt = (name, work) => { try { work(); seen[name] = "done"; } catch (error) { seen[name] = error.code; } };
    ${Object.entries(tries)
      .map(([name, work]) => `attempt(${JSON.stringify(name)}, () => { ${work} });`)
      .join("\n")}
    parentPort.postMessage(seen);`;
  const { env, ...seen } = await answerOf(startParseThread(moduleOf(code)));
  assert.equal(existsSync(written), false);
  assert.equal(env, 0);
  for (const name of Object.keys(tries)) {
    // Node itself lets a thread read below the working directory.
    if (process.cwd() === "/" && (name === "read" || name === "list")) continue;
    assert.match(String(seen[name]), /^ERR_(ACCESS_DENIED|DLOPEN_DISABLED)$/, `${name}: ${seen[name]}`);
  }
});

for (const job of [HTML, XLSX, PDF, CALENDAR])
  test(`once the parser of ${job.format} is loaded, nothing that others use can be changed`, async () => {
    const thread = new URL("../../src/nodes/parse/parse-thread.ts", import.meta.url).href;
    const code = `import { parentPort } from "node:worker_threads"; import ${JSON.stringify(thread)};
      parentPort.on("message", (message) => {
        if (message !== "look") return;
        const frozen = [Object, Array, String, RegExp, Map, Promise, Uint8Array, JSON]
          .every((each) => Object.isFrozen(each.prototype ?? each));
        parentPort.postMessage({ frozen });
      });`;
    const worker = startParseThread(moduleOf(code));
    const replies: any[] = [];
    worker.on("message", (reply) => {
      replies.push(reply);
      if (replies.length === 1) worker.postMessage("look");
    });
    worker.postMessage(structuredClone(job));
    while (!replies.some((reply) => "frozen" in reply))
      await new Promise((resolve) => setTimeout(resolve, 10));
    await worker.terminate();
    assert.equal(replies[0].problem, undefined);
    assert.deepEqual(
      replies.find((reply) => "frozen" in reply),
      { frozen: true },
    );
  });

/** The number that the next thread of this process would have. */
async function nextThread(): Promise<number> {
  const thread = new Worker("0", { eval: true });
  const { threadId } = thread;
  await new Promise((resolve) => thread.once("exit", resolve));
  return threadId;
}

test("a thread reads one spreadsheet or PDF, and no other file before or after it", async () => {
  await parse(HTML);
  const before = await nextThread();
  for (const job of [XLSX, XLSX, PDF, PDF]) await parse(job);
  await parse(HTML);
  assert.equal((await nextThread()) - before, 5);
});

test("of many files at once no more threads read than there are places", async () => {
  const threads = (): number => readdirSync("/proc/self/task").length;
  if (!existsSync("/proc/self/task")) return;
  await parse(HTML);
  const before = threads();
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, threads())), 5);
  const large: ParseJob = { ...HTML, text: "<p>one</p>".repeat(5_000) } as ParseJob;
  await Promise.all(Array.from({ length: 16 }, async () => await parse(large)));
  clearInterval(watch);
  assert.ok(most - before <= 4, `${before} -> ${most} threads`);
});
