import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openMisused, type Misused } from "./misuse-setup.ts";
import { exchange, openConnection, type Connection } from "./raw-socket.ts";

const SLOW = 1_000;
const POLLING_MS = 6_000;

let misused: Misused;
before(async () => {
  misused = await openMisused();
});
after(async () => await misused[Symbol.asyncDispose]());

const BOMBS = [
  "[".repeat(1_048_000),
  `{"a":`.repeat(200_000),
  `{"a":[${"0,".repeat(520_000)}0]}`,
  // As many values as are allowed: these are read whole.
  `{"a":[${"1.5,".repeat(249_990)}0]}`,
  `{"a":[${'{"b":1},'.repeat(120_000)}0]}`,
];

test("While 1,000 slow connections and 20 parallel JSON bombs go on, a good client's p99 stays under 500 ms", async () => {
  const { service, key, caller } = misused;
  const head = `Host: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const run = await caller.post("/blueprints/echo/trigger", {});
  const status = `/blueprint-runs/${run.body.id}/status`;

  // A third each: the headers never end, the body never ends, and nothing is ever sent.
  const slow: Connection[] = [];
  for (let at = 0; at < SLOW; at += 50) {
    slow.push(
      ...(await Promise.all(Array.from({ length: 50 }, async () => await openConnection(service.url)))),
    );
  }
  const starts = [
    `GET /api/v1${status} HTTP/1.1\r\nX: `,
    `POST /api/v1/credential-sessions HTTP/1.1\r\n${head}Content-Length: 1000\r\n\r\n{`,
    "",
  ];
  for (const [index, { socket }] of slow.entries()) socket.write(starts[index % starts.length] ?? "");
  const trickle = setInterval(() => {
    for (const [index, { socket, isClosed }] of slow.entries())
      if (index % starts.length !== 2 && !isClosed()) socket.write("a");
  }, 1_000);

  const statuses: (number | undefined)[] = [];
  const bombing = Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const text = BOMBS[index % BOMBS.length] ?? "";
      assert.ok(text.length <= 1_048_576);
      await sleep(1_000);
      const bytes = `POST /api/v1/credential-sessions HTTP/1.1\r\n${head}Content-Length: ${text.length}\r\n\r\n${text}`;
      const { answers } = await exchange(service.url, bytes, { timeoutMs: 10_000 });
      statuses.push(answers[0]?.status);
    }),
  );
  const times: number[] = [];
  const end = performance.now() + POLLING_MS;
  while (performance.now() < end) {
    const start = performance.now();
    const answer = await caller.get(status);
    times.push(performance.now() - start);
    assert.equal(answer.status, 200);
    await sleep(10);
  }
  await bombing;
  clearInterval(trickle);
  for (const { socket } of slow) socket.destroy();

  times.sort((a, b) => a - b);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Infinity;
  console.log(
    `  ${times.length} polls: p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, worst ${at(1).toFixed(1)} ms`,
  );
  assert.ok(times.length > 50);
  assert.ok(at(0.99) < 500, `p99 is ${at(0.99)} ms`);
  for (const status of statuses) assert.ok(status === 422 || status === 413, `a bomb was answered ${status}`);
  assert.equal(statuses.length, 20);
  assert.equal(service.child.exitCode, null);
});
