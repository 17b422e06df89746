import assert from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import { install, type Installation } from "../service.ts";
import { inTier, testInAll } from "../tiers.ts";
import { latchkeyProcess, startLatchkey, urlOf, type Environment, type Running } from "./program.ts";

let installation: Installation & AsyncDisposable;
let key: string;

before(async () => {
  installation = await install({ LATCHKEY_LOG_LEVEL: "info" });
  await installation.apply("account: acme\nname: Acme");
  key = await installation.createKey("acme");
});

after(async () => await installation[Symbol.asyncDispose]());

const serve = (extra: Environment = {}): Running =>
  startLatchkey(["serve"], { ...installation.environment, ...extra });

/** A connection of a caller, byte by byte. */
interface Wire {
  readonly socket: Socket;
  send(text: string): void;
  received(): string;
  until(pattern: RegExp): Promise<string>;
  readonly closed: Promise<void>;
}

async function openWire(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => (text += part));
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await new Promise((resolve) => socket.once("connect", resolve));
  const until = async (pattern: RegExp): Promise<string> => {
    for (let tries = 0; tries < 500 && !pattern.test(text); tries++) await sleep(10);
    assert.match(text, pattern);
    return text;
  };
  return { socket, send: (part) => void socket.write(part), received: () => text, until, closed };
}

const BODY = JSON.stringify({ strategy_id: "strat_nowhere" });
const HEAD =
  `POST /api/v1/credential-sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${BODY.length}\r\n`;

/** A request that the service has begun to answer, and that ends when the rest of its body is sent. */
async function beginRequest(url: string): Promise<Wire> {
  const wire = await openWire(url);
  wire.send(`${HEAD}Authorization: Bearer ${key}\r\n\r\n${BODY.slice(0, 10)}`);
  await sleep(150);
  assert.equal(wire.received(), "");
  return wire;
}

async function isRefused(url: string): Promise<boolean> {
  return await fetch(`${url}/healthz`).then(
    () => false,
    () => true,
  );
}

/** The database over a TCP port of its own, which can go away and come back. */
async function openProxy(
  databaseUrl: string,
): Promise<{ url: string; open(): Promise<void>; close(): Promise<void> }> {
  const target = new URL(databaseUrl);
  const host = decodeURIComponent(target.hostname);
  const port = Number(target.port || 5432);
  const sockets = new Set<Socket>();
  const server = createServer((inside) => {
    const outside = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const [socket, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      sockets.add(socket.unref());
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  const listen = async (at: number): Promise<void> =>
    await new Promise((resolve) => server.listen(at, "127.0.0.1", resolve));
  await listen(0);
  // A failed test leaves it open; that must not keep the file from ending.
  server.unref();
  const own = (server.address() as AddressInfo).port;
  const credentials = `${target.username}:${target.password}`;
  return {
    url: `postgresql://${credentials}@127.0.0.1:${own}${target.pathname}`,
    open: async () => await listen(own),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Set and empty, they count as unset. */
const EMPTY = [
  "LATCHKEY_HOST",
  "LATCHKEY_PUBLIC_URL",
  "LATCHKEY_SIGNING_KEY",
  "LATCHKEY_SIGNING_KEY_FILE",
  "LATCHKEY_MASTER_KEY",
  "LATCHKEY_MASTER_KEY_FILE",
  "LATCHKEY_TRUSTED_PROXIES",
  "LATCHKEY_EGRESS_ALLOW",
  "LATCHKEY_LOG_FORMAT",
  "LATCHKEY_WORKER_CONCURRENCY",
  "LATCHKEY_DRAIN_SECONDS",
  "LATCHKEY_UNKNOWN_THING",
];

describe("the start", () => {
  test("the first line on standard output says the URL, and it answers at once; an empty variable counts as unset; where standard error is no terminal every line is JSON, from the start to the end", async () => {
    const empty = Object.fromEntries(EMPTY.map((name) => [name, ""]));
    const service = serve({ ...empty, LATCHKEY_LOG_LEVEL: "trace" });
    const first = await service.line(/./);
    assert.equal(first, service.stdout().split("\n")[0]);
    const url = must(
      /^Latchkey listens at (http:\/\/127\.0\.0\.1:\d+) \(api, worker\)$/.exec(first)?.[1],
      first,
    );
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    await fetch(`${url}/api/v1/nowhere`);
    // A signal right after that line is a drain, not a death.
    service.child.kill("SIGTERM");
    const { code, signal, stdout, stderr } = await service.ended;
    assert.deepEqual([code, signal], [0, null]);
    assert.equal(stdout, `Latchkey listens at ${url} (api, worker)\nThe dashboard is at ${url}/dashboard\n`);
    const lines = stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { level: number; time: string; msg: string });
    assert.ok(
      lines.some(({ msg }) => msg.startsWith("stopping")),
      stderr,
    );
    for (const { level, time } of lines) assert.ok(level > 0 && !Number.isNaN(Date.parse(time)));
  });

  test("LATCHKEY_PUBLIC_URL is what the first line says and hosted URLs begin with", async () => {
    const service = serve({ LATCHKEY_PUBLIC_URL: "https://connect.acme.example/vault/" });
    assert.equal(await urlOf(service), "https://connect.acme.example/vault");
    // Where it listens, and where people go, stand behind it.
    await service.line(/^The dashboard is at https:\/\/connect\.acme\.example\/vault\/dashboard$/);
    const local = await service.line(/^On this machine it listens at /);
    const home = await fetch(`${local.split(" ").at(-1)}/`, { redirect: "manual" });
    assert.deepEqual([home.status, home.headers.get("location")], [302, "/vault/dashboard"]);
    service.child.kill("SIGTERM");
    assert.equal((await service.ended).code, 0);
  });

  test("a signal during the start stops the service as soon as it is up, with exit code 0", async () => {
    const { db } = installation.database;
    const service = serve();
    await db.transaction(async (tx) => {
      await tx.query("lock table vault_key in access exclusive mode");
      const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      for (let tries = 0; tries < 400 && (await db.query(waiting)).length === 0; tries++) await sleep(10);
      assert.equal((await db.query(waiting)).length, 1, "the start waits for the lock");
      service.child.kill("SIGTERM");
      await sleep(50);
    });
    const { code, signal, stdout } = await service.ended;
    assert.deepEqual([code, signal], [0, null]);
    assert.match(stdout, /^Latchkey listens at /);
    assert.equal((await db.query("select 1 from worker")).length, 0);
  });

  test("a taken port: exit code 1 and what to do", async () => {
    const squatter = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => squatter.once("listening", resolve));
    const { port } = squatter.address() as AddressInfo;
    const result = await latchkeyProcess(["serve"], {
      ...installation.environment,
      LATCHKEY_PORT: String(port),
    });
    squatter.close();
    assert.equal(result.code, 1);
    assert.equal(result.stdout, "");
    assert.match(
      result.stderr,
      new RegExp(`127\\.0\\.0\\.1:${port} is taken\\. Choose another with LATCHKEY_PORT`),
    );
    // Nothing of it lives on: no worker that takes runs.
    assert.equal((await installation.database.db.query("select 1 from worker")).length, 0);
  });

  const ELSEWHERE = "an address of another machine: exit code 1 and what to do";
  testInAll("a taken port, above", ELSEWHERE, {}, async () => {
    const result = await latchkeyProcess(["serve"], {
      ...installation.environment,
      LATCHKEY_HOST: "192.0.2.1",
    });
    assert.equal(result.code, 1);
    assert.match(result.stderr, /LATCHKEY_HOST is not an address of this machine/);
  });

  test("a database that does not answer: exit code 1, what to do, and no password", async () => {
    const url = new URL(must(installation.environment["DATABASE_URL"], "url"));
    const password = "not-the-password-8431";
    const urls = [
      `postgresql://latchkey:${password}@127.0.0.1:1/latchkey`,
      `postgres://x:${password}@localhost:1/x`,
    ];
    url.pathname = "/there_is_no_such_database";
    for (const each of inTier([...urls, url.href], (_, index) => index === 0)) {
      const result = await latchkeyProcess(["serve"], {
        ...installation.environment,
        DATABASE_URL: each,
        LATCHKEY_DATABASE_WAIT_SECONDS: "0",
      });
      assert.equal(result.code, 1);
      assert.match(
        result.stderr,
        /The database of DATABASE_URL can't be opened \(.+\)\. Check that the server is running/,
      );
      assert.equal(result.stderr.includes(password), false);
    }
  });
});

describe("the settings", () => {
  test("every wrong or unknown LATCHKEY_* is listed at once, exit code 1; values of keys are not shown", async () => {
    const wrong = {
      LATCHKEY_HOST: "not a host",
      LATCHKEY_PORT: "80800",
      LATCHKEY_PUBLIC_URL: "ftp://x",
      DATABASE_URL: "mysql://root:hunter2@db/x",
      LATCHKEY_MASTER_KEY_FILE: "/nowhere/key",
      LATCHKEY_EGRESS_ALLOW: "10.0.0.0/99,somewhere",
      LATCHKEY_LOG_LEVEL: "loud",
      LATCHKEY_LOG_FORMAT: "xml",
      LATCHKEY_WORKER_CONCURRENCY: "0",
      LATCHKEY_DRAIN_SECONDS: "-1",
      LATCHKEY_PROT: "8080",
      LATCHKEY_SIGNING_KEYS: "lks_canary",
    };
    for (const command of inTier(["serve", "init", "doctor"], (each) => each === "serve")) {
      const { code, stdout, stderr } = await latchkeyProcess([command], {
        LATCHKEY_DATA_DIR: "/nowhere/data",
        ...wrong,
      });
      assert.equal(code, 1, stderr);
      assert.equal(stdout, "");
      for (const name of Object.keys(wrong))
        assert.match(stderr, new RegExp(`^ {2}${name}(_FILE)?\\b`, "m"), name);
      assert.match(stderr, /LATCHKEY_PROT is not a setting\. The settings are: LATCHKEY_HOST, /);
      assert.match(stderr, /10\.0\.0\.0\/99/);
      assert.match(stderr, /somewhere/);
      assert.doesNotMatch(stderr, /hunter2|canary/);
    }
  });
});

/** A drain that outlives every test: what holds an end up until its limit never ends. */
const PATIENT = { LATCHKEY_DRAIN_SECONDS: "600" };
const STOPPED = /"msg":"stopped"/;

describe("the end", () => {
  for (const signal of inTier(["SIGTERM", "SIGINT"] as const, (each) => each === "SIGTERM")) {
    test(`${signal}: idle connections are closed, a request under way is answered, then exit code 0`, async () => {
      const service = serve(PATIENT);
      const url = await urlOf(service);
      const idle = await openWire(url);
      idle.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
      await idle.until(/"ok"/);
      const underWay = await beginRequest(url);
      const ready = await openWire(url);
      ready.send("GET /readyz HTTP/1.1\r\nHost: x\r\n");
      await sleep(100);

      service.child.kill(signal);
      await idle.closed;
      assert.equal(await isRefused(url), true);
      ready.send("\r\n");
      assert.match(await ready.until(/draining/), /^HTTP\/1\.1 503 [^]*connection: close/i);
      assert.equal(service.child.exitCode, null, "it waits for the request");
      underWay.send(BODY.slice(10));
      assert.match(
        await underWay.until(/\}$/),
        /^HTTP\/1\.1 422 [^]*connection: close[^]*"validation_error"/i,
      );
      // Its caller keeps the connection: that must not hold the end up.
      assert.equal((await service.ended).code, 0);
      assert.match(service.stderr(), STOPPED);
    });
  }

  test("a request that never ends is cut at the limit: exit code 0", async () => {
    const service = serve({ LATCHKEY_DRAIN_SECONDS: "1" });
    const hanging = await beginRequest(await urlOf(service));
    const toldAt = performance.now();
    service.child.kill("SIGTERM");
    const { code } = await service.ended;
    const took = performance.now() - toldAt;
    await hanging.closed;
    assert.equal(code, 0);
    assert.ok(took > 900, `${took} ms`);
    // By cutting the connection; the last resort, the end of the process all the same, says nothing.
    assert.match(service.stderr(), STOPPED);
  });

  test("a second signal ends it at once", async () => {
    const ends = [
      ["SIGTERM", "SIGTERM", 143],
      ["SIGTERM", "SIGINT", 130],
    ] as const;
    for (const [first, second, exitCode] of inTier(ends, (_, index) => index === 1)) {
      const service = serve(PATIENT);
      await beginRequest(await urlOf(service));
      service.child.kill(first);
      await sleep(500);
      assert.equal(service.child.exitCode, null);
      service.child.kill(second);
      // Not the drain's 0.
      assert.equal((await service.ended).code, exitCode);
      assert.doesNotMatch(service.stderr(), STOPPED);
    }
  });

  test("one Ctrl-C that arrives twice, as under npm, is one", async () => {
    const service = serve(PATIENT);
    // While it answers this, none of the signals comes when Node has put its handlers away already.
    const underWay = await beginRequest(await urlOf(service));
    service.child.kill("SIGINT");
    service.child.kill("SIGINT");
    await sleep(20);
    service.child.kill("SIGINT");
    underWay.send(BODY.slice(10));
    assert.equal((await service.ended).code, 0);
  });
});

describe("health", () => {
  test("/readyz is 503 while the database is gone and 200 when it is back; /healthz is 200 all the time", async () => {
    const database = await openProxy(must(installation.environment["DATABASE_URL"], "url"));
    const service = serve({ DATABASE_URL: database.url, ...PATIENT });
    const url = await urlOf(service);
    const status = async (path: string): Promise<number> => (await fetch(url + path)).status;
    assert.deepEqual([await status("/healthz"), await status("/readyz")], [200, 200]);
    await database.close();
    assert.deepEqual([await status("/healthz"), await status("/readyz")], [200, 503]);
    const api = await fetch(`${url}/api/v1/blueprint-runs/run_x/status`, {
      headers: { authorization: `Bearer ${key}` },
    });
    assert.equal(api.status, 503);
    assert.equal(((await api.json()) as { error: { type: string } }).error.type, "internal_error");
    assert.equal(service.child.exitCode, null);
    await database.open();
    let ready = 0;
    for (let tries = 0; tries < 200 && ready !== 200; tries++) {
      ready = await status("/readyz");
      await sleep(20);
    }
    assert.equal(ready, 200);
    // The worker joins again about a second later: a signal meanwhile still ends everything.
    service.child.kill("SIGTERM");
    // Who has asked whether it is ready is told before the port closes.
    while ((await status("/readyz").catch(() => 503)) !== 503) await sleep(20);
    assert.equal((await service.ended).code, 0);
    await database.close();
  });
});

describe("the log", () => {
  const OTHERS = "LATCHKEY_LOG_FORMAT=pretty writes for people, LATCHKEY_LOG_LEVEL=error leaves the rest out";
  testInAll("the default format and the level trace (the start)", OTHERS, {}, async () => {
    const pretty = serve({ LATCHKEY_LOG_FORMAT: "pretty" });
    await urlOf(pretty);
    pretty.child.kill("SIGTERM");
    assert.match((await pretty.ended).stderr, /INFO.*stopping/);
    const quiet = serve({ LATCHKEY_LOG_LEVEL: "error" });
    await urlOf(quiet);
    quiet.child.kill("SIGTERM");
    assert.equal((await quiet.ended).stderr, "");
  });
});
