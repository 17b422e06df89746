// docs/secrets.md: a process that opens nothing has codes exchanged by one that does, and the secret reaches neither it nor the database.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { handOverSignIn } from "#actions/sessions/hand-over-sign-in.ts";
import type { HostedSession } from "#actions/sessions/hosted-session.ts";
import { takeAnswer, type OAuthAttempt } from "#db/credentials/oauth.ts";
import { openLog } from "#lib/log.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { eventually, PATIENCE_MS, until } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { openBench, type Bench } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { signingOf } from "../invariants.ts";
import { keepSecret } from "../keep-secret.ts";
import { testInAll } from "../tiers.ts";
import { Visitor } from "./oauth-setup.ts";

const VALUE = "client-secret-canary-3Gn7xT";

/** Who collects what is sent elsewhere. */
let trap: Target;
let bench: Bench;

before(async () => {
  trap = await openTarget();
  bench = await openBench([
    `strategy: strat_form
account: acme
hosts: ["{TARGET}"]
login: { type: oauth2, client_id: x, client_secret: { secret: NORTHWIND }, authorization_url: "{TARGET}/authorize", token_url: "{TARGET}/token" }`,
  ]);
  bench.target.on("POST /token", { json: { access_token: "access-token-1", token_type: "Bearer" } });
  await keepSecret(bench.installation, "NORTHWIND", VALUE, bench.target.url);
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await trap?.[Symbol.asyncDispose]();
});

const db = () => bench.installation.database.db;

const basic = (header: unknown): string =>
  Buffer.from(String(header).slice("Basic ".length), "base64").toString("utf8");

/** A sign-in at a process with the api role alone, which the target answers with `query`; gives its session's status. */
async function signInAtApi(extra: Record<string, string>, query = "code=c"): Promise<string> {
  const service = await bench.installation.serve(extra, ["api"]);
  try {
    const caller = openCaller(service.url, bench.key);
    const { body: session } = await caller.post("/credential-sessions", { strategy_id: "strat_form" });
    const visitor = new Visitor();
    const left = new URL(await visitor.leave(session.hosted_url));
    await visitor.open(
      `${left.searchParams.get("redirect_uri")}?${query}&state=${left.searchParams.get("state")}`,
    );
    return (await caller.get(`/credential-sessions/${session.id}`)).body.status;
  } finally {
    await service.end();
  }
}

const exchanges = () =>
  bench.target.seen("POST /token").filter(({ body }) => String(body).includes("authorization_code"));

test("a process with the api role alone does not open a secret: a process with the worker role exchanges the code", async () => {
  const { length: before } = exchanges();
  assert.equal(await signInAtApi({}), "completed");
  const sent = exchanges().slice(before);
  assert.equal(sent.length, 1);
  assert.equal(decodeURIComponent(basic(sent[0]?.headers.authorization)), `x:${VALUE}`);
  // What the end user or the target refuses is told by the other process, and the end user may try again.
  assert.equal(await signInAtApi({}, "error=access_denied"), "pending");
  assert.equal(exchanges().length, before + 1);
  bench.target.on("POST /token", { status: 400, json: { error: "invalid_grant" } });
  assert.equal(await signInAtApi({}), "pending");
  bench.target.on("POST /token", { json: { access_token: "access-token-1", token_type: "Bearer" } });
  assert.deepEqual(
    await db().query(
      "select outcome, answer from oauth_attempt where used_at is not null and outcome is not null",
    ),
    [
      { outcome: "refused", answer: null },
      { outcome: "failed", answer: null },
    ],
  );
  assert.deepEqual(
    await db().query("select 1 from graphile_worker.jobs where task_identifier = 'finish_sign_in'"),
    [],
  );
});

test("with no process with the worker role nobody leaves, unless a file gives the secret", async () => {
  const { installation } = bench;
  await bench.service.end();
  await assert.rejects(signInAtApi({}), /stayed: 502/);
  assert.match(
    installation.logs(),
    /has only the api role and can't open the secret NORTHWIND, and no process with the worker role/,
  );
  const file = join(installation.dataFolder, "client-secrets.json");
  const give = (origin: string): Record<string, string> => {
    writeFileSync(file, JSON.stringify({ acme: { NORTHWIND: { value: "of-the-file", origins: [origin] } } }));
    return { LATCHKEY_CLIENT_SECRETS_FILE: file };
  };
  await assert.rejects(signInAtApi(give(trap.url)), /stayed: 502/);
  assert.equal(await signInAtApi(give(bench.target.url)), "completed");
  assert.equal(basic(bench.target.seen("POST /token").at(-1)?.headers.authorization), "x:of%2Dthe%2Dfile");
  assert.deepEqual(trap.all, []);
});

test("an answer is taken once, however many processes ask for it", async () => {
  const [attempt] = await db().query<{ hash: Buffer }>(
    `update oauth_attempt set answer = '\\x01'
     where state_hash = (select state_hash from oauth_attempt limit 1) returning state_hash as hash`,
  );
  const { hash } = attempt ?? assert.fail("no sign-in");
  const taken = await Promise.all(Array.from({ length: 8 }, async () => await takeAnswer(db(), hash)));
  assert.equal(taken.filter((each) => each !== undefined).length, 1);
});

test("what nobody takes over in time is withdrawn, and the session says what this process can't open", async (t) => {
  const [attempt] = await db().query<OAuthAttempt>(
    `select state_hash as "stateHash", attempt.account_id as "accountId", session_id as "sessionId",
       attempt.strategy_id as "strategyId", form
     from oauth_attempt attempt join credential_session on credential_session.id = session_id
     where used_at is not null and status = 'pending' limit 1`,
  );
  const log = openLog({ level: "error", format: "json" }, { write: () => {} });
  const services = { db: db(), log, signing: signingOf(bench.installation) };
  // Each look at the clock is a minute later.
  const now = performance.now.bind(performance);
  let minutes = 0;
  const { mock } = t.mock.method(performance, "now", () => now() + ++minutes * 60_000);
  const outcome = await handOverSignIn(
    services,
    {} as HostedSession,
    attempt ?? assert.fail("no sign-in"),
    { state: "s", parameters: new URLSearchParams(), redirectUri: "https://latchkey.example/back" },
    new LoginFailure("the secret is sealed for this process"),
  );
  mock.restore();
  assert.equal(outcome.kind, "retry");
  assert.deepEqual(
    await db().query(
      `select answer, outcome, sign_in_failure as failure from oauth_attempt
       join credential_session on credential_session.id = session_id where state_hash = $1`,
      [attempt?.stateHash],
    ),
    [{ answer: null, outcome: "failed", failure: "the secret is sealed for this process" }],
  );
});

testInAll(
  "a sign-in with no worker, and one that a worker refuses",
  "a sign-in that no process takes over ends in time, and is not finished behind the end user's back",
  { timeout: 200_000 },
  async () => {
    // One that was there a moment ago.
    await db().query(
      "insert into worker (id, lock_key, hostname, pid, heartbeat_at) values ('gone', 1, 'h', 1, app_now() + interval '1 hour')",
    );
    const { length: before } = exchanges();
    const [status, answers] = await Promise.all([
      signInAtApi({}, "code=code-canary-2Fw"),
      eventually(
        "the answer was handed over",
        async () => {
          const rows = await db().query<{ answer: Buffer }>(
            "select answer from oauth_attempt where answer is not null",
          );
          return rows.length > 0 ? rows.map(({ answer }) => answer.toString("latin1")) : undefined;
        },
        PATIENCE_MS,
      ),
    ]);
    assert.equal(status, "pending");
    assert.ok(!answers.join().includes("code-canary"));
    await db().query("delete from worker where id = 'gone'");
    const service = await bench.installation.serve();
    const waiting = "select 1 from graphile_worker.jobs where task_identifier = 'finish_sign_in'";
    await until("the job is done", async () => (await db().query(waiting)).length === 0);
    await service.end();
    assert.equal(exchanges().length, before);
  },
);
