// Findings M4 and M9: what strangers do at the sign-in keeps no operator out, confirms no guess, and fills neither log nor table.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RefusedSignIns } from "#actions/operators/refused-sign-ins.ts";
import { makeKnownBrowser } from "#actions/operators/known-browser.ts";
import { forgetOldSignIns } from "#db/operators/operator-throttle.ts";
import { limits } from "#domain/limits.ts";
import { encodeBase32 } from "#domain/totp.ts";
import { openLog } from "#lib/log.ts";
import { testInAll } from "../tiers.ts";
import { codeOf, openBrowser, sendPlain, type OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

/** Where the only trusted proxy is: what it says of clients counts. */
const PROXY = "127.0.0.51";

let stage: OperatorStage;

before(async () => {
  stage = await openOperatorStage({ LATCHKEY_TRUSTED_PROXIES: `${PROXY}/32` });
});
after(async () => await stage?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await stage.db.query("delete from operator_throttle");
  await stage.moveClock("0");
});

interface Attempt {
  readonly email: string;
  readonly password: string;
  readonly code?: string;
}

/** One request of the client that the proxy names. */
async function attempt(client: string, body: Attempt, cookie = ""): Promise<OperatorAnswer> {
  const text = JSON.stringify(body);
  return await sendPlain(
    `${stage.service.url}/operator/v1/session`,
    "POST",
    {
      "Content-Type": "application/json",
      "Content-Length": String(Buffer.byteLength(text)),
      "X-CSRF-Token": "x",
      "X-Forwarded-For": client,
      ...(cookie === "" ? {} : { Cookie: cookie }),
    },
    text,
    PROXY,
  );
}

/** An operator with an authenticator app; gives what the app shows. */
async function withApp(): Promise<Someone & { readonly secret: string }> {
  const someone = await stage.operator();
  await stage.giveSecondFactor(someone);
  const secret = encodeBase32(stage.signing.operators.totpKey(someone.id, Buffer.alloc(16)));
  return { ...someone, secret };
}

/** The code of now, which counts again though it was used. */
async function codeNow({ id, secret }: { readonly id: string; readonly secret: string }): Promise<string> {
  await stage.db.query("update operator set totp_step = 0 where id = $1", [id]);
  return codeOf(secret);
}

const addressOf = (index: number): string =>
  `2001:db8:${(index >> 16).toString(16)}:${(index & 0xffff).toString(16)}::1`;

/** Strangers who ask as fast as they are answered, `atOnce` of them, until `meanwhile` is done. */
async function during<T>(
  atOnce: number,
  ask: (index: number) => Promise<OperatorAnswer>,
  meanwhile: () => Promise<T>,
): Promise<T> {
  let [isOver, asked] = [false, 0];
  const refused: number[] = [];
  const strangers = Array.from({ length: atOnce }, async () => {
    while (!isOver) refused.push((await ask(asked++)).status);
  });
  // However slow the machine is: not before the limits are met.
  while (!refused.includes(429) && refused.every((status) => status === 401)) await sleep(5);
  const result = await meanwhile();
  isOver = true;
  await Promise.all(strangers);
  assert.ok(
    refused.every((status) => status === 401 || status === 429),
    refused.join(),
  );
  return result;
}

/** Enough to meet every limit; each of them costs as long as an operator waits. */
const STRANGERS = 12;

const floods = {
  "from the operator's own address": {
    ask: (index: number) =>
      attempt("203.0.113.1", { email: `name-${index}@a`, password: "x", code: "000000" }),
  },
  "from addresses without an end": {
    ask: (index: number) =>
      attempt(addressOf(index), { email: `name-${index % 9}@a`, password: "x", code: "000000" }),
  },
} as const;

async function signsIn(
  client: string,
  ask: (index: number, someone: Someone) => Promise<OperatorAnswer>,
  atOnce: number,
) {
  const someone = await withApp();
  const { email, password } = someone;
  const home = await attempt(client, { email, password, code: await codeNow(someone) });
  assert.equal(home.status, 201, home.text);
  const known =
    (home.headers["set-cookie"] ?? []).find((each) => each.includes("_browser_"))?.split(";")[0] ?? "";
  const times: number[] = [];
  await during(
    atOnce,
    (index) => ask(index, someone),
    async () => {
      // In a browser that nobody has used yet, with everything at once.
      let begun = performance.now();
      const fresh = await attempt(client, { email, password, code: await codeNow(someone) });
      assert.equal(fresh.status, 201, fresh.text);
      times.push(performance.now() - begun);
      // In the one at home, step by step as the dashboard does.
      begun = performance.now();
      const first = await attempt(client, { email, password }, known);
      assert.deepEqual([first.status, first.body.error.details[0].code], [401, "second_factor_required"]);
      const second = await attempt(client, { email, password, code: await codeNow(someone) }, known);
      assert.equal(second.status, 201, second.text);
      times.push(performance.now() - begun);
    },
  );
  return times;
}

describe("M4: while a flood runs, password and second factor open the door", () => {
  for (const [what, { ask }] of Object.entries(floods))
    test(what, async () => void (await signsIn("203.0.113.1", ask, STRANGERS)));

  const onName = (index: number, { email }: Someone): Promise<OperatorAnswer> =>
    attempt(addressOf(index), { email, password: "x", ...(index % 2 === 0 ? { code: "000000" } : {}) });

  test("on the operator's own name", async () => void (await signsIn("203.0.113.2", onName, STRANGERS)));

  testInAll("the three above, without the clock", "within 5 s in each case", {}, async () => {
    const times = [
      ...(await signsIn("203.0.113.1", floods["from the operator's own address"].ask, 60)),
      ...(await signsIn("203.0.113.1", floods["from addresses without an end"].ask, 300)),
      ...(await signsIn("203.0.113.2", onName, 60)),
    ];
    assert.ok(Math.max(...times) < 5_000, times.map(Math.round).join());
  });
});

describe("a browser that is known", () => {
  test("is known by a cookie of ours for this operator alone, and forged ones count for nothing", async () => {
    const [someone, other] = [await stage.operator(), await stage.operator()];
    const { email, password } = someone;
    const keys = stage.signing.operators;
    const { nameKey, value } = makeKnownBrowser(keys, email, new Map());
    const foreign = makeKnownBrowser(keys, other.email, new Map());
    await stage.stopClock();
    for (let tries = 0; tries < limits.signInFree + 3; tries++)
      await attempt(addressOf(tries), { email, password: "wrong" });
    const byCookie = async (cookie: string): Promise<number> =>
      (await attempt("203.0.113.3", { email, password }, `latchkey_operator_browser_${cookie}`)).status;
    const flipped = `${value.slice(0, -2)}${value.at(-2) === "A" ? "B" : "A"}${value.at(-1)}`;
    for (const cookie of [
      `${nameKey}=${foreign.value}`,
      `${foreign.nameKey}=${foreign.value}`,
      `${nameKey}=${flipped}`,
      `${nameKey}=`,
      `${nameKey}=${value}.${value}`,
    ])
      assert.equal(await byCookie(cookie), 429, cookie);
    assert.equal(await byCookie(`${nameKey}=${value}`), 201);
  });

  test("has a counter of its own: stolen, it is worth as few guesses as a name", async () => {
    const someone = await stage.operator();
    const { nameKey, value } = makeKnownBrowser(stage.signing.operators, someone.email, new Map());
    await stage.stopClock();
    const statuses: number[] = [];
    for (let tries = 0; tries < 2 * limits.signInFree + 6; tries++)
      statuses.push(
        (
          await attempt(
            addressOf(tries),
            { email: someone.email, password: "wrong" },
            `latchkey_operator_browser_${nameKey}=${value}`,
          )
        ).status,
      );
    const compared = statuses.filter((status) => status === 401).length;
    assert.ok(compared <= 2 * (limits.signInFree + 1), statuses.join());
    assert.equal(statuses.at(-1), 429);
  });
});

describe("beyond the limits", () => {
  async function beyond(email: string): Promise<void> {
    await stage.stopClock();
    for (let tries = 0; tries < limits.signInFree + 3; tries++)
      await attempt(addressOf(tries + 500), { email, password: "wrong" });
  }

  test("no answer confirms half of a guess", async () => {
    const someone = await withApp();
    const { email, password } = someone;
    await beyond(email);
    await beyond("nobody@a");
    const right = await codeNow(someone);
    const seen = [];
    for (const body of [
      { email, password: "wrong" },
      { email, password },
      { email, password: "wrong", code: "000000" },
      { email, password: "wrong", code: right },
      { email, password, code: "000000" },
      { email: "nobody@a", password, code: right },
      { email, password, code: "R-AAAA-AAAA-AAAA-AAAA" },
    ]) {
      const { status, body: answer } = await attempt("203.0.113.4", body);
      seen.push([status, answer.error.message.replace(/\d+ s/, "N s"), answer.error.details[0].code]);
    }
    assert.deepEqual(seen, Array(seen.length).fill(seen[0]));
    assert.deepEqual([seen[0]?.[0], seen[0]?.[2]], [429, "second_factor_required"]);
  });

  test("who knows the password has a few guesses at the code and no more; a recovery code is no guess", async () => {
    const someone = await withApp();
    const { email, password, id } = someone;
    await beyond(email);
    for (let tries = 0; tries < limits.signInCodes.burst; tries++)
      assert.equal((await attempt("203.0.113.5", { email, password, code: "000000" })).status, 429);
    const refused = await attempt("203.0.113.5", { email, password, code: await codeNow(someone) });
    assert.equal(refused.status, 429, "the code would be right");
    await stage.db.query("insert into operator_recovery_code (operator_id, hash) values ($1, $2)", [
      id,
      stage.signing.operators.recoveryHash(id, "RabcdEFGHijklMNOP"),
    ]);
    const code = "R-abcd-EFGH-ijkl-MNOP";
    assert.equal((await attempt("203.0.113.5", { email, password, code })).status, 201);
  });
});

describe("an IPv6 client is its /64, whichever of its addresses it uses", () => {
  test("at the sign-in", async () => {
    const statuses: number[] = [];
    for (let tries = 0; tries <= limits.signIns.burst + 15 && statuses.at(-1) !== 429; tries++)
      statuses.push(
        (await attempt(`2001:db8:ffff:1::${tries}`, { email: `name-${tries}@b`, password: "x" })).status,
      );
    assert.equal(statuses.at(-1), 429, statuses.join());
    assert.equal((await attempt("2001:db8:ffff:2::1", { email: "name@b", password: "x" })).status, 401);
  });

  test("with wrong API keys", async () => {
    const ask = async (client: string): Promise<number> =>
      (
        await sendPlain(
          `${stage.service.url}/api/v1/credential-sessions/sess_x`,
          "GET",
          { Authorization: "Bearer lk_wrong", "X-Forwarded-For": client },
          undefined,
          PROXY,
        )
      ).status;
    let isRefused = false;
    for (let round = 0; round < 20 && !isRefused; round++) {
      const asked = Array.from({ length: 50 }, (_, index) => ask(`2001:db8:ffff:1::${round}:${index}`));
      isRefused = (await Promise.all(asked)).includes(429);
    }
    assert.ok(isRefused, "1,000 wrong keys of one network were all looked at");
    assert.equal(await ask("2001:db8:ffff:2::1"), 401);
  });
});

describe("M9: what strangers leave behind", () => {
  const failures = async () =>
    await stage.db.query<{ subject: string; detail: string }>(
      `select subject_id as subject, detail from audit_entry where action = 'operator.sign_in_failed' order by id`,
    );

  test("refusals of names that nobody has are one entry with their number; a name that exists has its own", async () => {
    await using own = await openOperatorStage();
    const someone = await own.operator();
    const browser = openBrowser(own.service.url);
    for (let tries = 0; tries < 8; tries++) await browser.signIn(`nobody-${tries}@a`, "wrong");
    await browser.signIn(someone.email, "wrong");
    await own.service.end();
    const entries = await own.db.query<{ subject: string; detail: string }>(
      `select subject_id as subject, detail from audit_entry where action = 'operator.sign_in_failed' order by subject_id`,
    );
    assert.deepEqual(
      entries.map(({ subject, detail }) => [subject, JSON.parse(detail)]),
      [
        [someone.id, { reason: "password", address: browser.address }],
        ["unknown", { count: 8, password: 8 }],
      ],
    );
  });

  test("what can't be put on record is counted on, and nothing is written without refusals", async () => {
    const before_ = (await failures()).length;
    await stage.db.query(
      `create function refuse_entry() returns trigger language plpgsql as 'begin raise exception ''full''; end';
       create trigger refuse_entry before insert on audit_entry for each row execute function refuse_entry()`,
    );
    const log = openLog({ level: "error", format: "json" }, { write: () => {} });
    const refused = new RefusedSignIns(stage.db, stage.signing.audit, log);
    for (let times = 0; times < 1_000; times++) refused.count(null, "oidc_state");
    await refused.write();
    assert.equal((await failures()).length, before_);
    await stage.db.query("drop trigger refuse_entry on audit_entry; drop function refuse_entry()");
    refused.count(null, "password");
    await refused.close();
    await refused.close();
    const written = (await failures()).slice(before_);
    assert.deepEqual(
      written.map(({ detail }) => JSON.parse(detail)),
      [{ count: 1_001, oidc_state: 1_000, password: 1 }],
    );
  });

  test("the table of counters keeps so many of names that nobody has, and all of the others", async () => {
    const insert = async (kind: string, rows: number, isUnknown: boolean): Promise<void> =>
      void (await stage.db.query(
        `insert into operator_throttle (name_hash, failures, blocked_until, last_at, is_unknown)
         select sha256(convert_to($1 || n, 'UTF8')), 1, app_now(), app_now() - n * interval '1 ms', $3
         from generate_series(1, $2::int) n`,
        [kind, rows, isUnknown],
      ));
    const count = async (): Promise<readonly [known: number, unknown: number]> => {
      const [row] = await stage.db.query<{ known: number; unknown: number }>(
        `select count(*) filter (where not is_unknown)::int as known, count(*) filter (where is_unknown)::int as unknown
         from operator_throttle`,
      );
      return [row?.known ?? -1, row?.unknown ?? -1];
    };
    await insert("known", 50, false);
    await insert("unknown", limits.unknownNamesMax + 70, true);
    await forgetOldSignIns(stage.db, limits.unknownNamesMax + 20);
    assert.deepEqual(await count(), [50, limits.unknownNamesMax + 20]);
    // The service does so itself, however fast they come.
    const refused = new RefusedSignIns(
      stage.db,
      stage.signing.audit,
      openLog({ level: "error", format: "json" }, { write: () => {} }),
    );
    for (let names = 0; names < 1_000; names++) refused.countUnknownName();
    for (let tries = 0; tries < 500 && (await count())[1] > limits.unknownNamesMax; tries++) await sleep(10);
    assert.deepEqual(await count(), [50, limits.unknownNamesMax]);
    await attempt("203.0.113.6", { email: "somebody-unknown@a", password: "x" });
    assert.deepEqual(
      await count(),
      [50, limits.unknownNamesMax + 1],
      "an attempt by such a name is one of them",
    );
  });
});
