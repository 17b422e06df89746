// docs/decisions/0033: two processes behind a balancer that asks for their readiness are restarted one after the other under
// 200 requests a second: none fails, and runs under way go on elsewhere.
import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { startBalancer } from "./balancer.ts";
import { afterFaults, openFaultStage } from "./fault-stage.ts";

const PER_SECOND = 200;
const EVERY_MS = 20;
/** Clients wait for a slow machine instead of burying it. */
const AT_ONCE_MAX = 40;
const SETTLE_MS = 1_000;
const PATIENCE_MS = 120_000;

/** Many requests a second at little cost: clients and services share the cores. */
function openClients(url: string, key: string) {
  const agent = new Agent({ keepAlive: true });
  const { hostname, port } = new URL(url);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const send = async (method: "GET" | "POST", path: string, body?: string) =>
    await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const asked = request({ agent, hostname, port, method, path: `/api/v1${path}`, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.on("end", () => resolve({ status: answer.statusCode, text }));
        answer.on("error", reject);
      });
      asked.on("error", reject);
      asked.end(body);
    });
  return { send, [Symbol.dispose]: () => agent.destroy() };
}

test(
  "a rolling restart under load: no request fails, and runs under way are handed over",
  { timeout: 300_000 },
  async (context) => {
    await using stage = await openFaultStage();
    await using balancer = await startBalancer();
    using clients = openClients(balancer.url, stage.key);
    const caller = openCaller(balancer.url, stage.key);
    const serve = async () => {
      const service = await stage.installation.serveProcess({ LATCHKEY_DRAIN_SECONDS: "30" });
      balancer.add(service.url);
      return service;
    };
    const replace = async (old: Awaited<ReturnType<typeof serve>>) => {
      const code = await old.end("SIGTERM");
      balancer.remove(old.url);
      const next = await serve();
      await sleep(SETTLE_MS);
      return { code, next };
    };
    const [first, second] = await Promise.all([serve(), serve()]);
    const release = stage.holdReads();
    const held = await Promise.all(
      Array.from({ length: 8 }, async () => await stage.trigger(caller, "reads")),
    );
    const areReading = async (): Promise<true | undefined> =>
      held.every((run) => stage.reads(run).length > 0) ? true : undefined;
    await eventually("eight runs are reading", areReading, PATIENCE_MS);

    const accepted: string[] = [];
    const failures = new Map<string, number>();
    let [sent, underWay] = [0, 0];
    const once = async (number: number): Promise<void> => {
      const isTrigger = number % 10 === 0;
      const answer = await (
        isTrigger
          ? clients.send("POST", "/blueprints/plain/trigger", '{"rows":[]}')
          : clients.send("GET", `/blueprint-runs/${held[number % held.length]}/status`)
      ).catch((error: unknown) => String(error));
      if (typeof answer !== "string" && answer.status === (isTrigger ? 202 : 200)) {
        if (isTrigger) accepted.push((JSON.parse(answer.text) as { id: string }).id);
        return;
      }
      const form = typeof answer === "string" ? answer : `${answer.status} ${answer.text}`;
      failures.set(form, (failures.get(form) ?? 0) + 1);
    };
    const begun = performance.now();
    const cpu = process.cpuUsage();
    const ticks = setInterval(() => {
      // As many as are due by now: a tick that came late owes those of the ones before it.
      const due = ((performance.now() - begun) * PER_SECOND) / 1_000;
      while (sent < due && underWay < AT_ONCE_MAX) {
        underWay += 1;
        void once(sent++).finally(() => (underWay -= 1));
      }
    }, EVERY_MS);
    await sleep(SETTLE_MS);
    const [one, two] = [await replace(first), await replace(second)];
    clearInterval(ticks);
    const seconds = (performance.now() - begun) / 1_000;
    const used = process.cpuUsage(cpu);
    await eventually("the last answers", async () => (underWay === 0 ? true : undefined), PATIENCE_MS);
    release();
    const rows = await stage.ended([...held, ...accepted]);
    context.diagnostic(
      JSON.stringify({
        requests: sent,
        perSecond: Math.round(sent / seconds),
        // Of this process: clients, balancer and target.
        cpuMsPerRequest: Number(((used.user + used.system) / 1_000 / sent).toFixed(2)),
        runs: rows.length,
        failures: [...failures],
      }),
    );
    assert.deepEqual([...failures], []);
    assert.deepEqual([one.code, two.code], [0, 0]);
    assert.ok(sent > PER_SECOND && accepted.length > 0);
    assert.deepEqual([...new Set(rows.map(({ status }) => status))], ["completed"]);
    // Handed over, not lost: nothing counts against them.
    const [lost] = await stage.installation.database.db.query(
      `select count(*)::int as runs, min(lease_epoch) as claims from run where id = any($1) and lost_leases = 0`,
      [held],
    );
    assert.equal(lost?.["runs"], held.length);
    assert.ok(Number(lost?.["claims"]) > 1, "every one has been handed over");
    await stage.check(caller, held);
    await afterFaults(stage);
    await Promise.all([one.next.end("SIGKILL"), two.next.end("SIGKILL")]);
  },
);
