// docs/decisions/0024: DELETE against triggers and runs, over two processes.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, openCaller, type Caller } from "../caller.ts";
import { assertInvariants } from "../invariants.ts";
import { install } from "../service.ts";
import { ledger, ledgerDocuments, startTarget, type Target } from "./target.ts";

const ROUNDS = 40;
const LANES = 4;
const PATIENCE_MS = 60_000;
const IN_FLIGHT_MS = 500;

interface Seen {
  readonly user: string;
  readonly at: number;
}

const seen: Seen[] = [];
let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let callers: readonly Caller[];

before(async () => {
  // Every user may log in, and each request tells whose it is.
  target = await startTarget(
    (request) => {
      if (request.path === "/login") {
        const user = new URLSearchParams(request.body).get("username") ?? "";
        seen.push({ user, at: performance.now() });
        return { status: 302, headers: { location: "/", "set-cookie": `sid=${user}; Path=/; HttpOnly` } };
      }
      const user = /sid=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1] ?? "";
      seen.push({ user, at: performance.now() });
      return ledger({ ...request, headers: { cookie: "sid=ledger-session" } });
    },
    { delayMs: 300 },
  );
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url, { cache: "15m" }));
  const key = await installation.createKey("acme");
  const services = await Promise.all([installation.serveProcess(), installation.serveProcess()]);
  callers = services.map((service) => openCaller(service.url, key));
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

interface Round {
  readonly user: string;
  readonly credential: string;
  readonly deletedAt: number;
  /** Of the trigger that raced with the delete. */
  readonly raced: 202 | 422;
  /** How the runs ended that were there. */
  readonly ends: readonly string[];
}

async function race(index: number): Promise<Round> {
  const user = `user-${index}`;
  const [one, other] = index % 2 === 0 ? callers : callers.toReversed();
  assert.ok(one && other);
  const credential = await connect(one, "strat_ledger", { username: user, password: `secret of ${user}` });
  const trigger = async (by: Caller) =>
    await by.post("/blueprints/ledger/trigger", { credential_id: credential });
  // A run that is waiting, logging in, or reading, by the time of the delete.
  const earlier = await trigger(one);
  assert.equal(earlier.status, 202);
  await sleep(randomInt(800));
  const [raced, deleted] = await Promise.all([
    sleep(randomInt(12)).then(async () => await trigger(one)),
    sleep(randomInt(12)).then(async () => ({
      ...(await other.delete(`/credentials/${credential}`)),
      at: performance.now(),
    })),
  ]);
  assert.equal(deleted.status, 204);
  assert.ok(raced.status === 202 || raced.status === 422, raced.text);
  if (raced.status === 422) assert.equal(raced.body.error.details[0].field, "credential_id");
  const runs = [earlier, raced].filter(({ status }) => status === 202);
  const ends = await Promise.all(
    runs.map(async ({ body }) => (await one.waitForRun(body.id, PATIENCE_MS)).body.status),
  );
  assert.equal((await trigger(one)).status, 422);
  return { user, credential, deletedAt: deleted.at, raced: raced.status, ends };
}

test(`${ROUNDS} deletes against triggers and runs over two processes: refused or stopped, and nothing is left or sent`, async (t) => {
  const rounds: Round[] = [];
  await Promise.all(
    Array.from({ length: LANES }, async (_, lane) => {
      for (let index = lane; index < ROUNDS; index += LANES) rounds.push(await race(index));
    }),
  );
  const ids = rounds.map(({ credential }) => credential);
  for (const place of [
    "credential where id",
    "login_session where credential_id",
    "totp_use where credential_id",
  ]) {
    const left = await installation.database.db.query(`select 1 from ${place} = any($1)`, [ids]);
    assert.equal(left.length, 0, place);
  }
  // A request that was on its way when its run was stopped may still come in.
  let arrived = -1;
  while (arrived < seen.length) {
    arrived = seen.length;
    await sleep(IN_FLIGHT_MS);
  }
  await sleep(1_500);
  assert.deepEqual(seen.slice(arrived), [], "a request after every run had ended");
  const lags = rounds.map(({ user, deletedAt }) =>
    Math.max(0, ...seen.filter((each) => each.user === user).map(({ at }) => at - deletedAt)),
  );
  const deletes = await installation.database.db.query(
    `select 1 from audit_entry where action = 'credential.delete' and subject_id = any($1)`,
    [ids],
  );
  assert.equal(deletes.length, ROUNDS, "one entry for each delete");
  const count = (what: string): number =>
    rounds.filter(({ ends, raced }) => [...ends, String(raced)].includes(what)).length;
  t.diagnostic(
    `racing triggers: ${count("202")} accepted, ${count("422")} refused; rounds with a failed run: ${count("failed")}; ` +
      `last request ${Math.round(Math.max(...lags))} ms after a delete`,
  );
  // The race was one: else the test proves nothing.
  assert.ok(count("202") > 0 && count("422") > 0 && count("failed") > 0);
  await assertInvariants(installation);
});
