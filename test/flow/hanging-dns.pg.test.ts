// A name server that has no answer for one target's name: other targets, files and callers notice nothing of it.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openCaller } from "../caller.ts";
import { PATIENCE_MS, until } from "../eventually.ts";
import { install } from "../service.ts";
import { startProcess } from "../service-process.ts";
import { startTarget } from "./target.ts";

/** Of loopback, so that the machine's own may listen elsewhere. */
const NAME_SERVER = "127.0.0.77";
/** Fewer than a worker has places, and more than a process has threads for look-ups and files. */
const HANGING = 12;
const skip = process.getuid?.() === 0 ? false : "needs root, to give a process another name server";

const ANSWERED = "answers.example";

/** What the name server says: one name is 127.0.0.1 and has no address of version 6, to all others it says nothing. */
function answerOf(question: Buffer): Buffer | null {
  const wanted = Buffer.from(`\x07answers\x07example\0`);
  if (!question.includes(wanted)) return null;
  const end = 12 + wanted.length;
  const isOfVersion4 = question.readUInt16BE(end) === 1;
  const head = Buffer.from(question.subarray(0, end + 4));
  // An answer without an error, with one question, and one record or none.
  for (const [at, value] of [0x81_80, 1, isOfVersion4 ? 1 : 0, 0, 0].entries())
    head.writeUInt16BE(value, 2 + 2 * at);
  // The question's name, type A, class IN, a minute, four bytes.
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
  return isOfVersion4 ? Buffer.concat([head, record]) : head;
}

const documentsOf = (answering: string): readonly string[] => [
  "account: acme",
  `blueprint: hangs
account: acme
hosts: ["https://nobody-answers.example"]
nodes:
  - { id: asks, type: http, request: { url: "https://nobody-answers.example/" } }
  - { id: rows, type: parse, from: asks, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  `blueprint: names
account: acme
hosts: ["${answering}"]
nodes:
  - { id: asks, type: http, request: { url: "${answering}/" } }
  - { id: rows, type: parse, from: asks, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  `blueprint: rows
account: acme
nodes:
  - { id: a, type: input, refKey: a }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
];

test(
  "while a name is not resolved, uploads are stored, and runs that need another name or none complete",
  { skip, timeout: 300_000 },
  async () => {
    let asked = 0;
    const server = createSocket("udp4", (question, { port, address }) => {
      asked++;
      const answer = answerOf(question);
      if (answer !== null) server.send(answer, port, address);
    });
    server.bind(53, NAME_SERVER).unref();
    await once(server, "listening");
    const target = await startTarget(() => ({ body: [{ n: 1 }] }));
    const answering = target.url.replace("127.0.0.1", ANSWERED);
    await using installation = await install();
    await installation.apply(...documentsOf(answering));
    const resolver = join(installation.dataFolder, "resolv.conf");
    writeFileSync(resolver, `nameserver ${NAME_SERVER}\n`);
    const inNamespace = [
      "--mount",
      "sh",
      "-c",
      `mount --bind ${resolver} /etc/resolv.conf && exec "$@"`,
      "sh",
    ];
    const program = {
      node: "unshare",
      flags: inNamespace,
      main: join(import.meta.dirname, "../../latchkey"),
    };
    const service = await startProcess(installation.environment, ["api", "worker"], () => {}, { program });
    try {
      const caller = openCaller(service.url, await installation.createKey("acme"));
      const trigger = async (): Promise<unknown> => await caller.post("/blueprints/hangs/trigger", {});
      await Promise.all(Array.from({ length: HANGING }, trigger));
      await until("names are asked for", () => asked > 0);
      const form = new FormData();
      const rows = Array.from({ length: 4_000 }, (_, n) => ({ n, text: "x".repeat(100) }));
      form.set("a", new Blob([JSON.stringify(rows)]), "rows.json");
      const { status, body } = await caller.post("/blueprints/rows/trigger", form);
      assert.equal(status, 202);
      assert.equal((await caller.waitForRun(body.id, PATIENCE_MS)).body.status, "completed");
      const { body: other } = await caller.post("/blueprints/names/trigger", {});
      assert.equal((await caller.waitForRun(other.id, PATIENCE_MS)).body.status, "completed");
      assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
    } finally {
      await service.end("SIGKILL");
      server.close();
      await target.close();
    }
  },
);
