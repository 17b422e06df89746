/** The worst that clients can do to a service that answers others, and one of those others. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import type { Misused } from "./misuse-setup.ts";
import { exchange, openConnection, type Connection } from "./raw-socket.ts";

const SLOW = 1_000;
export const BOMBS_AT_ONCE = 20;

const BOMBS = [
  "[".repeat(1_048_000),
  `{"a":`.repeat(200_000),
  `{"a":[${"0,".repeat(520_000)}0]}`,
  // As many values as are allowed: these are read whole.
  `{"a":[${"1.5,".repeat(249_990)}0]}`,
  `{"a":[${'{"b":1},'.repeat(120_000)}0]}`,
];

let bombs = 0;

/** One answer to the good client. */
interface Poll {
  readonly status: number;
  /** By the clock. */
  readonly waitedMs: number;
  /** Of that the service's main thread ran this long: what does not depend on who else wants the cores; */
  readonly ranMs: number;
  /** and this long it was ready to run and had no core. */
  readonly starvedMs: number;
}

/** Polls from a process of its own. */
async function pollFromOutside({ service, key }: Misused, path: string): Promise<readonly Poll[]> {
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      join(import.meta.dirname, "good-client.ts"),
      `${service.url}${path}`,
      key,
      String(service.child.pid),
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  return (await json(child.stdout)) as readonly Poll[];
}

/** A third each: the headers never end, the body never ends, and nothing is ever sent. */
async function openSlowConnections(
  { service }: Misused,
  starts: readonly string[],
): Promise<AsyncDisposable> {
  const slow: Connection[] = [];
  for (let at = 0; at < SLOW; at += 50) {
    const opened = Array.from({ length: 50 }, async () => await openConnection(service.url));
    slow.push(...(await Promise.all(opened)));
  }
  for (const [index, { socket }] of slow.entries()) socket.write(starts[index % starts.length] ?? "");
  const trickle = setInterval(() => {
    for (const [index, { socket, isClosed }] of slow.entries())
      if (starts[index % starts.length] !== "" && !isClosed()) socket.write("a");
  }, 1_000);
  return {
    [Symbol.asyncDispose]: async () => {
      clearInterval(trickle);
      for (const { socket } of slow) socket.destroy();
    },
  };
}

/** Bombs that arrive together; every second one has an Idempotency-Key, so that its body is written out for comparison too. */
async function throwBombs({ service }: Misused, head: string): Promise<readonly (number | undefined)[]> {
  return await Promise.all(
    Array.from({ length: BOMBS_AT_ONCE }, async (_, index) => {
      const text = BOMBS[index % BOMBS.length] ?? "";
      assert.ok(text.length <= 1_048_576);
      const key = index % 2 === 0 ? "" : `Idempotency-Key: bomb-${bombs++}\r\n`;
      const bytes = `POST /api/v1/credential-sessions HTTP/1.1\r\n${head}${key}Content-Length: ${text.length}\r\n\r\n${text}`;
      const { answers } = await exchange(service.url, bytes, { timeoutMs: 60_000 });
      return answers[0]?.status;
    }),
  );
}

export function p99(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Infinity;
}

/** A good client's polls, while 1,000 slow connections and bombs, 20 at once, go on; and what the bombs were answered. */
export async function pollUnderAttack(
  misused: Misused,
): Promise<{ readonly polls: readonly Poll[]; readonly answered: readonly (number | undefined)[] }> {
  const { key, caller } = misused;
  const head = `Host: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const run = await caller.post("/blueprints/echo/trigger", {});
  const status = `/api/v1/blueprint-runs/${run.body.id}/status`;
  await using _slow = await openSlowConnections(misused, [
    `GET ${status} HTTP/1.1\r\nX: `,
    `POST /api/v1/credential-sessions HTTP/1.1\r\n${head}Content-Length: 1000\r\n\r\n{`,
    "",
  ]);
  const answered: (number | undefined)[] = [];
  const polling = pollFromOutside(misused, status);
  let isOver = false;
  const over = polling.finally(() => (isOver = true));
  while (!isOver) answered.push(...(await throwBombs(misused, head)));
  return { polls: await over, answered };
}
