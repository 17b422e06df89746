// Many large bodies at once: they are bounded in memory, in turn by caller, and the service answers others meanwhile.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openCaller } from "../caller.ts";
import { openMisused, type Misused } from "./misuse-setup.ts";
import { openConnection, parseAnswers, waitFor, type Connection } from "./raw-socket.ts";

const CONNECTIONS = 300;
const GROWTH_MIB_MAX = 100;
const CLIENTS = 40;
/** Of another caller, before one who comes late: what is being read and parsed just then, and one turn. */
const TURNS_MAX = 10;

let misused: Misused;
before(async () => {
  misused = await openMisused();
});
after(async () => await misused?.[Symbol.asyncDispose]());

/** Valid, but for its keys; shared by all that send it. */
const BODY = Buffer.from(`{"pad":"${"x".repeat(1_048_576 - 10)}"}`);

const headOf = (path: string, ...lines: readonly string[]): string =>
  [
    `POST ${path} HTTP/1.1`,
    "Host: x",
    "Content-Type: application/json",
    `Content-Length: ${BODY.length}`,
    ...lines,
  ]
    .join("\r\n")
    .concat("\r\n\r\n");

async function sendMany(count: number, head: string): Promise<readonly Connection[]> {
  const opened = await Promise.all(
    Array.from({ length: count }, async () => await openConnection(misused.service.url)),
  );
  for (const { socket } of opened) {
    socket.write(head);
    socket.write(BODY);
  }
  return opened;
}

const statusesOf = (connections: readonly Connection[]): readonly number[] =>
  connections.flatMap(({ received }) => parseAnswers(received()).answers.map(({ status }) => status));

const rssMiB = (): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${misused.service.child.pid}/status`, "utf8"))?.[1]) /
  1_024;

const attacks: readonly (readonly [string, () => string, readonly number[]])[] = [
  ["an open route", () => headOf("/operator/v1/session", "X-CSRF-Token: x"), [413]],
  [
    "a caller",
    () => headOf("/api/v1/credential-sessions", `Authorization: Bearer ${misused.key}`),
    [422, 503],
  ],
];

for (const [who, head, statuses] of attacks) {
  test(`${CONNECTIONS} bodies of 1 MiB of ${who} take less than ${GROWTH_MIB_MAX} MiB`, async () => {
    const ready = async (): Promise<number> => (await fetch(`${misused.service.url}/readyz`)).status;
    assert.equal(await ready(), 200);
    const before = rssMiB();
    const connections = await sendMany(CONNECTIONS, head());
    let peak = before;
    let looks = 0;
    const allAnswered = (): boolean =>
      connections.every(({ received, isClosed }) => isClosed() || received().length > 0);
    for (const end = performance.now() + 60_000; !allAnswered() && performance.now() < end; looks++) {
      assert.equal(await ready(), 200);
      peak = Math.max(peak, rssMiB());
      await sleep(20);
    }
    const seen = statusesOf(connections);
    for (const { socket } of connections) socket.destroy();
    console.log(
      `  ${who}: ${before.toFixed(0)} -> ${peak.toFixed(0)} MiB, ${looks} looks, ${seen.length} answers`,
    );
    assert.ok(seen.length > CONNECTIONS / 2, `${seen.length} answers`);
    assert.deepEqual(
      [...new Set(seen)].sort((a, b) => a - b),
      statuses,
    );
    assert.ok(peak - before < GROWTH_MIB_MAX, `${before} -> ${peak} MiB`);
  });
}

test("who sends one large body waits for a turn, and not for all that another has sent", async () => {
  const key = await misused.installation.createKey("misuse");
  const other = openCaller(misused.service.url, key);
  const large = { text_0: "y".repeat(400_000) };
  assert.equal((await other.post("/blueprints/echo/trigger", large)).status, 202);
  const connections = await sendMany(
    CLIENTS,
    headOf("/api/v1/credential-sessions", `Authorization: Bearer ${misused.key}`),
  );
  const answered = (): number => statusesOf(connections).length;
  assert.ok(await waitFor(() => answered() > 0, 20_000));
  const before = answered();
  assert.equal((await other.post("/blueprints/echo/trigger", large)).status, 202);
  const turns = answered() - before;
  for (const { socket } of connections) socket.destroy();
  assert.ok(before < CLIENTS / 2, `${before} of ${CLIENTS} were answered at once: the test shows nothing`);
  assert.ok(turns <= TURNS_MAX, `${turns} others came first`);
});
