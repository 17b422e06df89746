// docs/decisions/0021: no code is sent twice for one step, and a target whose clock is off by a step is met.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Secret, TOTP } from "otpauth";
import { moveClock } from "../clock.ts";
import { blueprint, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const PERIOD_S = 15;
const URI = `otpauth://totp/x?secret=${SECRET}&period=${PERIOD_S}`;
const RUNS = 50;

before(async () => {
  bench = await openBench([
    `
strategy: strat_code
account: acme
hosts: ["{TARGET}"]
fields: [{ key: totp, type: totp_secret }]
login:
  type: http
  lockout: off
  steps:
    - { request: { url: /start } }
    - { request: { method: POST, url: /code, form: { code: "{{ $credential.totp.code }}" } } }`,
    blueprint(
      "code",
      "- { id: read, type: http, credential: it, request: { url: /api/read }, records: $ }\n- { id: out, type: output, refKey: out, from: read }",
      "credentials: { it: { strategy: strat_code } }",
    ),
  ]);
  bench.target.on("GET /start", {});
  bench.target.on("POST /code", {});
  bench.target.on("GET /api/read", { json: [] });
});
after(() => bench?.[Symbol.asyncDispose]());

const sent = () => bench.target.seen("POST /code").map(({ body }) => body.replace("code=", ""));
const moveSeconds = async (seconds: number) =>
  await moveClock(bench.installation.database.db, `${seconds} seconds`);

test(
  `${RUNS} runs at once of one credential send ${RUNS} different codes`,
  { timeout: 240_000 },
  async (t) => {
    t.after(async () => await moveSeconds(0));
    const id = await bench.connect("strat_code", { totp: URI });
    const before = sent().length;
    const triggered = await Promise.all(
      Array.from({ length: RUNS }, async () => await bench.trigger("code", { credential_id: id })),
    );
    assert.ok(triggered.every(({ status }) => status === 202));
    // A step is 15 s: the clock goes on by one whenever a code was sent, instead of waiting for twelve minutes.
    let seen = before;
    for (let steps = 0; seen - before < RUNS;) {
      const now = sent().length;
      if (now > seen) {
        steps += now - seen;
        seen = now;
        await moveSeconds(steps * PERIOD_S);
      }
      await sleep(20);
    }
    const codes = sent().slice(before);
    assert.equal(codes.length, RUNS);
    const reused = codes.length - new Set(codes).size;
    // Two of fifty six-digit codes may be equal by chance (1 in 800): their steps are what may not be.
    const rows = await bench.installation.database.db.query<{ step: string }>(
      "select step from totp_use where credential_id = $1",
      [id],
    );
    assert.ok(rows.length > 0);
    assert.ok(reused <= 1, `${reused} codes were sent twice`);
  },
);

test("a target whose clock is off by a step gets the code of its own time; further off than that it is not followed", async () => {
  const totp = new TOTP({ secret: Secret.fromBase32(SECRET), period: PERIOD_S });
  for (const [offS, followedS] of [
    [-15, -15],
    [15, 15],
    [90, 15],
    [-90, -15],
    [1, 0],
  ] as const) {
    bench.target.on("GET /start", () => ({
      headers: { date: new Date(Date.now() + offS * 1_000).toUTCString() },
    }));
    // A credential of its own: the steps of the others are no concern of it.
    const run = await bench.run("code", { credential_id: await bench.connect("strat_code", { totp: URI }) });
    assert.equal(run.status.status, "completed", String(run.detail));
    const delta = totp.validate({
      token: sent().at(-1) ?? "",
      timestamp: Date.now() + followedS * 1_000,
      window: 1,
    });
    assert.ok(
      delta === 0 || delta === -1,
      `${offS} s off: the code is ${delta} steps from where it should be`,
    );
  }
});
