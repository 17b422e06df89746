// docs/decisions/0010: a request with a key survives the death of the service and of its database connection.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { FAILPOINTS } from "#lib/failpoint.ts";
import { openCaller, submitHostedForm, type ApiAnswer } from "../caller.ts";
import { assertInvariants } from "../invariants.ts";
import type { ServiceProcess } from "../service.ts";
import { inTier, testInAll, tier } from "../tiers.ts";
import { startCommitProxy } from "./commit-proxy.ts";
import { installIdle, plantCredentials, runsNamed } from "./fixture.ts";
import { checkLedger, CLIENTS, drive, planOperations } from "./workload.ts";

const OPERATIONS_OF_ONE_CREDENTIAL = 5;
/** Enough for each point to act, and for a cut in each way. */
const REQUESTS = tier === "fast" ? 150 : 300;
const CUTS = REQUESTS / 5;
/** Those that the requests of this workload come by: workers, sign-ins and reviews reach the rest, in tests of their own. */
const POINTS = FAILPOINTS.filter(
  (point) =>
    !/^session\.after_(complete|candidate|verdict)$/.test(point) &&
    !/^(audit|browser|database|gate|oauth|review|run|schedule|step|sweep|turn|webhook|worker|write)\./.test(
      point,
    ),
);
/** Each point kills once at its first hit, with all clients just starting, and once in the middle of their work. */
const ALL_KILLS = [1, 4].flatMap((hit) => POINTS.map((point) => ({ point, hit })));
/** Before and after what decides: the claim of the key, and the commit. */
const REPRESENTATIVES = ["idempotency.after_claim", "idempotency.before_commit", "idempotency.after_commit"];
const KILLS = inTier(ALL_KILLS, ({ point, hit }) => REPRESENTATIVES.includes(point) && hit === 4);

let installation: Awaited<ReturnType<typeof installIdle>>;
let apiKey: string;

before(async () => {
  installation = await installIdle();
  apiKey = await installation.createKey("acme");
});
afterEach(
  async () =>
    await assertInvariants(installation, {
      credential_session: "plantCredentials makes credentials without sessions",
      credential_entry: "and without entries of the log",
      audit_unchained: "there is no worker",
    }),
);
after(() => installation?.[Symbol.asyncDispose]());

const serve = async (environment: Record<string, string> = {}): Promise<ServiceProcess> =>
  await installation.serveProcess(environment, ["api"]);

/** The point kills; every other one throws once, at its second hit. */
function failpointsOf({ point, hit }: { readonly point: string; readonly hit: number }): string {
  const throwing = POINTS.filter((other) => other !== point).map((other) => `${other}=throw:2`);
  return [`${point}=kill:${hit}`, ...throwing].join(",");
}

test(
  `${REQUESTS} keyed requests, the service killed and failing at every named point: nothing lost, nothing doubled, every retry answered`,
  { timeout: 400_000 },
  async () => {
    const operations = planOperations(
      "kill",
      await plantCredentials(installation, REQUESTS / OPERATIONS_OF_ONE_CREDENTIAL),
    );
    assert.equal(operations.length, REQUESTS);
    const kills = new Map<string, number>();
    let url: string | null = null;
    const driven = drive(operations, apiKey, () => url);
    let finished = false;
    const over = driven.then(() => (finished = true));
    for (const plan of KILLS) {
      if (finished) break;
      const service = await serve({ LATCHKEY_FAILPOINTS: failpointsOf(plan) });
      const death = new Promise<string | null>((resolve) =>
        service.child.once("exit", (_code, signal) => resolve(signal)),
      );
      url = service.url;
      const signal = await Promise.race([death, over.then(() => null)]);
      url = null;
      if (signal === "SIGKILL") kills.set(plan.point, (kills.get(plan.point) ?? 0) + 1);
      await service.end("SIGKILL");
    }
    // The last one lives, so that also the points which come late in a process's life get to throw.
    const service = await serve({ LATCHKEY_FAILPOINTS: POINTS.map((point) => `${point}=throw`).join(",") });
    url = service.url;
    const result = await driven;

    for (const point of new Set(KILLS.map((kill) => kill.point))) {
      const times = KILLS.filter((kill) => kill.point === point).length;
      assert.equal(kills.get(point), times, `${point} has killed the service ${times} times`);
    }
    for (const point of POINTS) {
      assert.ok(installation.logs().includes(`"code":"${point}"`), `${point} has thrown`);
    }
    assert.ok(installation.logs().includes("LATCHKEY_FAILPOINTS is set"), "the service warns of it");
    assert.ok(result.lostConnections >= KILLS.length, "each kill has cost a client its answer");
    assert.ok(result.serverErrors > 0, "points have thrown");
    assert.ok(result.replays > 0, "kills after COMMIT were answered by a replay");
    await checkLedger(installation, operations, result, { url: service.url, apiKey });
    await service.end("SIGKILL");
  },
);

test(`${CUTS} connections cut around COMMIT: nothing lost, nothing doubled; what was committed gets its real answer at once`, async () => {
  const operations = planOperations(
    "cut",
    await plantCredentials(installation, REQUESTS / OPERATIONS_OF_ONE_CREDENTIAL),
  );
  const proxy = await startCommitProxy(installation.database.connectionString);
  try {
    const service = await serve({ DATABASE_URL: proxy.url });
    proxy.start(CUTS);
    const result = await drive(operations, apiKey, () => service.url);

    assert.deepEqual(proxy.cuts, { after: CUTS / 3, late: CUTS / 3, before: CUTS / 3 });
    // A COMMIT that has reached the server, now or later, is found out and is no failure; one that has not is one, once, for
    // each request that shared it.
    assert.ok(result.serverErrors >= proxy.cuts.before && result.serverErrors <= proxy.cuts.before * CLIENTS);
    assert.equal(result.replays, 0, "no caller had to learn its result by a retry");
    assert.equal(result.lostConnections, 0);
    await checkLedger(installation, operations, result, { url: service.url, apiKey });
    await service.end("SIGKILL");
  } finally {
    await proxy.close();
  }
});

/** A session's form with its values, again and again until it is answered. Returns how often it failed; a session that is over was completed. */
async function submit(url: () => string | null, sessionUrl: string): Promise<number> {
  for (let failures = 0; ; failures++) {
    const service = url();
    const page = service === null ? null : new URL(new URL(sessionUrl).pathname, service).href;
    const status =
      page === null
        ? 500
        : await submitHostedForm(page, { token: "t" }).then(
            (answer) => answer.status,
            () => 500,
          );
    if (status < 500) return failures;
    assert.ok(failures < 1_000, `${status}`);
    await sleep(25);
  }
}

async function openForms(service: ServiceProcess, count: number): Promise<readonly string[]> {
  const caller = openCaller(service.url, apiKey);
  const made = Array.from(
    { length: count },
    async () => (await caller.post("/credential-sessions", { strategy_id: "strat_acme" })).body.hosted_url,
  );
  return await Promise.all(made);
}

/** Sessions are completed with one credential each, and so many are. */
async function assertCompleted(total: number): Promise<void> {
  const [row] = await installation.database.db.query<{
    completed: number;
    credentials: number;
    entries: number;
  }>(
    `select count(*) filter (where status = 'completed') as completed, count(credential.id) as credentials, count(entry.id) as entries
     from credential_session session join credential on credential.session_id = session.id
       left join audit_entry entry on entry.subject_id = credential.id and entry.action = 'credential.submit'`,
  );
  assert.deepEqual(row, { completed: total, credentials: total, entries: total });
}

testInAll(
  "submits share a statement, and of two one makes a credential (idempotency/group); what is written so is settled as sessions are",
  "forms that are submitted while connections are cut around COMMIT, and by a service that is killed: each makes one credential",
  { timeout: 400_000 },
  async () => {
    await installation.database.db.query("delete from credential");
    const proxy = await startCommitProxy(installation.database.connectionString);
    try {
      const cut = await serve({ DATABASE_URL: proxy.url });
      const forms = await openForms(cut, 60);
      proxy.start(12);
      let failures = 0;
      const waiting = [...forms];
      const client = async (): Promise<void> => {
        for (let form = waiting.shift(); form; form = waiting.shift()) {
          const failed = await submit(() => cut.url, form);
          failures += failed;
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, client));
      assert.deepEqual(proxy.cuts, { after: 4, late: 4, before: 4 });
      // Only what never reached the server failed, once for each form that shared it.
      assert.ok(failures >= proxy.cuts.before && failures <= proxy.cuts.before * CLIENTS, `${failures}`);
      await assertCompleted(60);
      await cut.end("SIGKILL");
    } finally {
      await proxy.close();
    }
    let service = await serve({ LATCHKEY_FAILPOINTS: "session.after_complete=kill:3" });
    const forms = await openForms(service, 12);
    let url: string | null = service.url;
    const death = new Promise((resolve) => service.child.once("exit", resolve));
    const submitted = Promise.all(forms.map(async (form) => await submit(() => url, form)));
    await death;
    url = null;
    service = await serve();
    url = service.url;
    await submitted;
    await assertCompleted(72);
    await service.end("SIGKILL");
  },
);

async function triggerAtOnce(
  urls: readonly string[],
  key: string,
  count: number,
): Promise<readonly ApiAnswer[]> {
  const callers = urls.map((url) => openCaller(url, apiKey));
  return await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const caller = callers[index % callers.length];
      assert.ok(caller);
      return await caller.post(
        "/blueprints/plain/trigger",
        { run_name: key, a: "[]" },
        { "Idempotency-Key": key },
      );
    }),
  );
}

for (const processes of inTier([1, 2], (count) => count === 2)) {
  test(`200 simultaneous duplicates over ${processes} process${processes > 1 ? "es" : ""}: one run, 200 equal bodies, 199 replays`, async () => {
    const services = await Promise.all(Array.from({ length: processes }, async () => await serve()));
    const urls = services.map((service) => service.url);
    for (const key of [`flood-${processes}-a`, `flood-${processes}-b`]) {
      const answers = await triggerAtOnce(urls, key, 200);
      assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [202]);
      assert.equal(new Set(answers.map((answer) => answer.text)).size, 1);
      assert.equal(
        answers.filter((answer) => answer.headers.get("idempotent-replay") === "true").length,
        199,
      );
      assert.equal(await runsNamed(installation, key), 1);
    }
    await Promise.all(services.map(async (service) => await service.end("SIGKILL")));
  });
}
