// docs/decisions/0033: two processes behind a balancer that asks for their readiness are restarted one after the other under
// 200 requests a second: none fails, and runs under way go on elsewhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { startBalancer } from "./balancer.ts";
import { afterFaults, openFaultStage } from "./fault-stage.ts";
import { openLoadClients, startSteadyLoad } from "./steady-load.ts";

const PER_SECOND = 200;
const SETTLE_MS = 1_000;
const PATIENCE_MS = 120_000;

test(
  "a rolling restart under load: no request fails, and runs under way are handed over",
  { timeout: 300_000 },
  async (context) => {
    await using stage = await openFaultStage();
    await using balancer = await startBalancer();
    using clients = openLoadClients(balancer.url, stage.key);
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
    await using load = startSteadyLoad(PER_SECOND, async (number) => {
      const isTrigger = number % 10 === 0;
      const answer = await (isTrigger
        ? clients.send("POST", "/api/v1/blueprints/plain/trigger", '{"rows":[]}')
        : clients.send("GET", `/api/v1/blueprint-runs/${held[number % held.length]}/status`));
      if (typeof answer === "string") return answer;
      if (answer.status !== (isTrigger ? 202 : 200)) return `${answer.status} ${answer.text}`;
      if (isTrigger) accepted.push((JSON.parse(answer.text) as { id: string }).id);
      return undefined;
    });
    await sleep(SETTLE_MS);
    const [one, two] = [await replace(first), await replace(second)];
    const told = await load.stop();
    release();
    const rows = await stage.ended([...held, ...accepted]);
    context.diagnostic(JSON.stringify({ ...told, runs: rows.length, failures: [...load.failures] }));
    assert.deepEqual([...load.failures], []);
    assert.deepEqual([one.code, two.code], [0, 0]);
    assert.ok(told.sent > PER_SECOND && accepted.length > 0);
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
