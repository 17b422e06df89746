/**
 * Runs of a service around a browser: the time from a run's claim until the target sees its first page, and what runs that wait for
 * a browser cost.
 */
import { connect, openCaller, type Caller } from "../test/caller.ts";
import type { Target } from "../test/documents/target.ts";
import { EMAIL, PASSWORD } from "../test/browser/portal.ts";
import { eventually } from "../test/eventually.ts";
import { install, type Installation } from "../test/service.ts";
import { descendantsOf, memoryOf } from "./process-memory.ts";
import { startProgram, type Program } from "./processes.ts";
import { nowMs } from "./runs-latency.ts";
import { openServer } from "./server.ts";
import type { Look, MemoryUse } from "./serve-process.ts";

const WAITING = 20;
const WARM = 5;
const PATIENCE_MS = 120_000;

const documents = (url: string): readonly string[] => [
  "account: acme\nrate_limit: off\nconcurrency: 100",
  `strategy: strat_portal
account: acme
hosts: ["${url}"]
fields: [{ key: email, type: email }, { key: password, type: password }]
login:
  type: browser
  steps:
    - goto: /login
    - dismiss: { role: button, name: Accept all }
    - fill: { label: Email, with: "{{ $credential.email }}" }
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - click: { role: button, name: Sign in }
    - expect: { visible: { role: heading, name: Dashboard }, rejected: { text: Wrong email or password } }
  session: { headers: { Authorization: "Bearer {{ $storage.local.\`auth-tokens\`.access }}" } }
`,
  `blueprint: requests
account: acme
credentials: { portal: { strategy: strat_portal } }
nodes:
  - { id: read, type: http, credential: portal, request: { url: /api/invoices }, records: items }
  - { id: out, type: output, refKey: out, from: read }
`,
  `blueprint: held
account: acme
timeout: 1h
hosts: ["${url}"]
nodes:
  - id: read
    type: browser
    timeout: 1h
    steps:
      - goto: "${url}/held"
        timeout: 5m
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }
`,
];

export interface BrowserRuns extends AsyncDisposable {
  /** Milliseconds from the claim of a run until the target sees the first page of its login. */
  claimToPage(): Promise<number>;
  /** What runs add that wait for a browser, besides the one that has it. The last measurement: they are left waiting. */
  wait(): Promise<WaitingCost>;
}

export interface WaitingCost {
  readonly runs: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Of all processes below the worker, as proportional set sizes. */
  readonly belowBytes: number;
  readonly processes: number;
}

export async function openBrowserRuns(target: Target, program: string): Promise<BrowserRuns> {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await openServer({ autovacuum: true, statements: false }));
  process.env["LATCHKEY_TEST_DATABASE"] = server.connectionString;
  const installation = opened.use(
    await install({ LATCHKEY_BROWSER: program, LATCHKEY_BROWSERS: "1", LATCHKEY_LOG_LEVEL: "error" }),
  );
  await installation.apply(...documents(target.url));
  const service = opened.use(
    startProgram("./serve-process.ts", {
      environment: installation.environment,
      options: ["--expose-gc"],
      roles: ["api", "worker"],
    }),
  );
  const { url } = await service.ask<{ url: string }>({ want: "url" } satisfies Look);
  const caller = openCaller(url, await installation.createKey("acme"));
  const credentialId = await connect(caller, "strat_portal", { email: EMAIL, password: PASSWORD });
  const kept = opened.move();
  return {
    claimToPage: async () => await claimToPage(installation, caller, target, credentialId),
    wait: async () => await measureWaiting(installation, caller, target, service),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

async function claimToPage(
  installation: Installation,
  caller: Caller,
  target: Target,
  credential_id: string,
): Promise<number> {
  const before = target.seen("GET /login").length;
  const { body } = await caller.post("/blueprints/requests/trigger", { credential_id });
  const { body: ended } = await caller.waitForRun(body.id, PATIENCE_MS);
  if (ended.status !== "completed") throw new Error(`a run of the bench ended as ${ended.status}`);
  const [run] = await installation.database.db.query<{ claimedMs: number }>(
    `select extract(epoch from claimed_at)::float8 * 1000 as "claimedMs" from run where id = $1`,
    [body.id],
  );
  const seenMs = performance.timeOrigin + (target.seen("GET /login")[before]?.atMs ?? Number.NaN);
  return seenMs - (run?.claimedMs ?? Number.NaN);
}

async function measureWaiting(
  installation: Installation,
  caller: Caller,
  target: Target,
  service: Program,
): Promise<WaitingCost> {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  target.on("GET /held", async () => {
    await promise;
    return { html: "<h1>Held</h1>" };
  });
  const trigger = async () => await caller.post("/blueprints/held/trigger", {});
  const untilWaiting = async (count: number): Promise<void> => {
    await eventually(
      `${count} runs wait`,
      async () => {
        const [row] = await installation.database.db.query<{ runs: number }>(
          "select count(*)::int as runs from run where line = 'browser' and parked_at is not null",
        );
        return row?.runs === count ? true : undefined;
      },
      PATIENCE_MS,
    );
  };
  await trigger();
  await eventually("it has the browser", () => target.seen("GET /held")[0], PATIENCE_MS);
  // What the first ones load stays.
  await Promise.all(Array.from({ length: WARM }, trigger));
  await untilWaiting(WARM);
  const alone = await look(service);
  await Promise.all(Array.from({ length: WAITING }, trigger));
  await untilWaiting(WARM + WAITING);
  const beside = await look(service);
  release();
  return {
    runs: WAITING,
    heapBytes: beside.heapBytes - alone.heapBytes,
    rssBytes: beside.rssBytes - alone.rssBytes,
    belowBytes: beside.belowBytes - alone.belowBytes,
    processes: beside.processes - alone.processes,
  };
}

async function look(
  service: Program,
): Promise<MemoryUse & { readonly belowBytes: number; readonly processes: number }> {
  const use = await service.ask<MemoryUse>({ want: "memory" } satisfies Look);
  const pids = descendantsOf(service.pid);
  return {
    ...use,
    belowBytes: pids.reduce((sum, pid) => sum + memoryOf(pid), 0),
    processes: pids.length,
  };
}

/** When the bare script's first page is seen, from its start: `work` runs it. */
export async function timeToPage(target: Target, work: () => Promise<unknown>): Promise<number> {
  const before = target.seen("GET /login").length;
  const beganMs = nowMs();
  await work();
  return performance.timeOrigin + (target.seen("GET /login")[before]?.atMs ?? Number.NaN) - beganMs;
}
