// docs/scaling.md: the api role in several processes that share one port.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request as open, type ClientRequest, type IncomingMessage } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { must } from "#lib/assert.ts";
import { until } from "../eventually.ts";
import { install, type Installation } from "../service.ts";
import { latchkeyProcess, startLatchkey, urlOf, type Running } from "./program.ts";

let installation: Installation & AsyncDisposable;
let key: string;
const keys = new Map<string, string>();

before(async () => {
  installation = await install();
  await installation.apply("account: acme\nname: Acme");
  key = await installation.createKey("acme");
  const folder = must(installation.environment["LATCHKEY_DATA_DIR"], "the data folder");
  for (const which of ["signing", "master"])
    keys.set(
      `LATCHKEY_${which.toUpperCase()}_KEY`,
      readFileSync(join(folder, `${which}.key`), "utf8").trim(),
    );
});
after(async () => await installation[Symbol.asyncDispose]());

const serve = (): Running =>
  startLatchkey(["serve", "--processes", "2"], {
    ...installation.environment,
    ...Object.fromEntries(keys),
    // What holds the end up until its limit never ends.
    LATCHKEY_DRAIN_SECONDS: "600",
  });

/** The processes that a process has started. */
const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const STRATEGY = JSON.stringify({ strategy_id: "strat_nowhere" });

/** A request on a connection of its own that has sent half of its body. */
async function beginRequest(url: string): Promise<{ end(): Promise<number | undefined> }> {
  const request: ClientRequest = open(`${url}/api/v1/credential-sessions`, {
    method: "POST",
    agent: false,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": STRATEGY.length,
      expect: "100-continue",
    },
  });
  const answer = new Promise<IncomingMessage>((resolve, reject) =>
    request.once("response", resolve).once("error", reject),
  );
  answer.catch(() => undefined);
  request.flushHeaders();
  // Its process has it: it asks for the body.
  await new Promise((resolve) => request.once("continue", resolve));
  request.write(STRATEGY.slice(0, 10));
  return {
    end: async () => {
      request.end(STRATEGY.slice(10));
      const { statusCode } = (await answer).resume();
      return statusCode;
    },
  };
}

test("two processes share a port; the keys are in no environment; one that dies is replaced; a drain cuts no request", async () => {
  const service = serve();
  const url = await urlOf(service);
  const pid = must(service.child.pid, "pid");
  const first = childrenOf(pid);
  assert.equal(first.length, 2);
  for (const child of first) {
    const environment = readFileSync(`/proc/${child}/environ`, "utf8");
    for (const [name, value] of keys) assert.ok(!environment.includes(value), name);
  }
  // In turn, so both have one.
  const underWay = [await beginRequest(url), await beginRequest(url)];
  assert.deepEqual(await Promise.all(underWay.map(async (each) => await each.end())), [422, 422]);

  process.kill(must(first[0], "a process"), "SIGKILL");
  await until("it is replaced", () => {
    const now = childrenOf(pid);
    return now.length === 2 && !now.includes(must(first[0], "a process"));
  });
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  assert.match(service.stderr(), /"signal":"SIGKILL","msg":"a process of the api role died"/);

  const late = [await beginRequest(url), await beginRequest(url)];
  const last = childrenOf(pid);
  service.child.kill("SIGTERM");
  // A process whose readiness was asked for says 503 before it closes the port. A connection that comes when the last of them closes
  // it may get no answer: Node's cluster keeps it, and has nobody to give it to.
  await until("no process is ready", async () => {
    const asked = fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5_000) });
    return (await asked.catch(() => null)) === null;
  });
  assert.deepEqual(await Promise.all(late.map(async (each) => await each.end())), [422, 422]);
  const { code, stderr } = await service.ended;
  assert.equal(code, 0, stderr);
  assert.match(stderr, /"msg":"stopped"/);
  assert.deepEqual(last.filter(isAlive), []);
});

test("when the first process is killed, the others end, and nothing keeps the port", async () => {
  const service = serve();
  const url = await urlOf(service);
  const children = childrenOf(must(service.child.pid, "pid"));
  service.child.kill("SIGKILL");
  await service.ended;
  await until("they end", () => !children.some(isAlive));
  await assert.rejects(fetch(`${url}/healthz`));
});

test("a port that is taken, and processes of a worker, are refused with what to do", async () => {
  const squatter = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => squatter.once("listening", resolve));
  const { port } = squatter.address() as AddressInfo;
  const taken = await latchkeyProcess(["serve", "--processes", "2"], {
    ...installation.environment,
    LATCHKEY_PORT: String(port),
  });
  squatter.close();
  assert.deepEqual([taken.code, taken.stdout], [1, ""]);
  assert.match(
    taken.stderr,
    new RegExp(`127\\.0\\.0\\.1:${port} is taken\\. Choose another with LATCHKEY_PORT`),
  );
  const worker = await installation.command("serve", "--roles", "worker", "--processes", "2");
  assert.equal(worker.code, 2);
  assert.match(worker.stderr, /--processes is for the api role/);
  const none = await installation.command("serve", "--processes", "0");
  assert.equal(none.code, 2);
  assert.match(none.stderr, /whole number from 1 to 128/);
});
