// docs/decisions/0022: passwords, second factor, throttle.
import assert from "node:assert/strict";
import { argon2Sync, randomBytes } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { listAllOperators } from "#actions/operators/list-operators.ts";
import { signIn } from "#actions/operators/sign-in.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { codeOf, openBrowser, sendPlain } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";
import { signAgain } from "../sign-again.ts";

let stage: OperatorStage;

before(async () => {
  stage = await openOperatorStage();
});

after(async () => await stage?.[Symbol.asyncDispose]());

// Each test has names and sessions of its own; what earlier ones were throttled for is not what it is about.
beforeEach(async () => {
  await stage.db.query("delete from operator_throttle");
  await stage.moveClock("0");
});

test("a session begins with a password and is over with its end; both are on record", async () => {
  const { browser, id, email } = await stage.signedIn();
  const other = await stage.operator();
  const times = new Map((await listAllOperators(stage.db)).map((each) => [each.id, each.signed_in_at]));
  assert.match(times.get(id) ?? "", /^\d{4}-.*Z$/);
  assert.equal(times.get(other.id), null);
  const me = await browser.send("GET", "/me");
  assert.equal(me.status, 200);
  assert.deepEqual([me.body.id, me.body.email, me.body.role], [id, email, "viewer"]);
  assert.equal(me.headers["cache-control"], "no-store");
  assert.equal((await browser.send("DELETE", "/session")).status, 204);
  assert.equal(browser.cookie, "");
  assert.deepEqual(await stage.actions(id), ["operator.sign_in", "operator.sign_out"]);
});

test("the cookie is for this service alone and no page reads it; the database knows its hash alone", async () => {
  const { browser, email, password } = await stage.signedIn();
  const answer = await browser.signIn(email, password);
  const [session = "", known = ""] = answer.headers["set-cookie"] ?? [];
  assert.match(session, /^latchkey_operator=[0-9A-Za-z]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  assert.match(
    known,
    /^latchkey_operator_browser_[0-9a-f]{16}=[\w-]{22}\.[\w-]{43}; Path=\/operator\/v1; HttpOnly; SameSite=Strict; Max-Age=15552000$/,
  );
  const token = browser.cookie.split("=")[1] ?? "";
  const dump = JSON.stringify(await stage.db.query("select * from operator_session"));
  assert.ok(!dump.includes(token) && !dump.includes(Buffer.from(token).toString("hex")));
  assert.ok(!answer.text.includes(token), "and no answer holds it");
});

test("behind TLS the cookie has the prefix that only TLS can set", async () => {
  const { email, password } = await stage.operator();
  await using server = await stage.serveHere("https://latchkey.example");
  const body = JSON.stringify({ email, password });
  const answer = await sendPlain(
    `${server.url}/operator/v1/session`,
    "POST",
    { "Content-Type": "application/json", "Content-Length": String(body.length), "X-CSRF-Token": "x" },
    body,
  );
  assert.equal(answer.status, 201, answer.text);
  const [session = "", known = ""] = answer.headers["set-cookie"] ?? [];
  assert.match(
    session,
    /^__Host-latchkey_operator=[0-9A-Za-z]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
  );
  assert.match(known, /^__Secure-latchkey_operator_browser_.*; Path=\/operator\/v1; .*; Secure$/);
});

describe("who is refused", () => {
  test("a name that nobody has, a wrong password and a disabled operator get one answer, after the same work", async () => {
    const used = stage.services();
    const { passwords } = used;
    const known = await stage.operator();
    const disabled = await stage.operator();
    await stage.installation.command("operators", "disable", disabled.email);
    // The dummy is made once.
    await passwords.verify("x", null, "known");
    const attempts = [
      { email: "nobody@example.com", password: "wrong" },
      { email: known.email, password: "wrong" },
      { email: disabled.email, password: disabled.password },
    ];
    const seen = [];
    for (const { email, password } of attempts) {
      const before = passwords.derived;
      const error: unknown = await signIn(used, {
        email,
        password,
        code: null,
        address: "192.0.2.1",
        userAgent: "",
        oldToken: null,
        knownBrowsers: new Map(),
      }).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof Problem);
      seen.push([error.status, error.message, error.details, passwords.derived - before]);
    }
    const wanted = [401, "The email, password or code is incorrect.", [], 1];
    assert.deepEqual(seen, [wanted, wanted, wanted]);
  });

  test("a name is throttled, whether or not somebody has it, and nobody is locked out forever", async () => {
    const { email, password } = await stage.operator();
    await stage.stopClock();
    for (const name of [email, "nobody-at-all@example.com"]) {
      const browser = openBrowser(stage.service.url);
      const statuses = [];
      for (let tries = 0; tries < limits.signInFree + 3; tries++)
        statuses.push((await browser.signIn(name, "wrong")).status);
      assert.deepEqual(statuses.slice(0, limits.signInFree), Array(limits.signInFree).fill(401));
      assert.equal(statuses.at(-1), 429, statuses.join());
    }
    const refused = await openBrowser(stage.service.url).signIn(email, password);
    assert.equal(refused.status, 429, "also with the right password");
    assert.match(String(refused.headers["retry-after"]), /^\d+$/);
    await stage.moveClock("6 minutes");
    assert.equal((await openBrowser(stage.service.url).signIn(email, password)).status, 201);
  });

  test("many at once are no more than one after the other", async () => {
    const { email } = await stage.operator();
    await stage.stopClock();
    const answers = await Promise.all(
      Array.from({ length: 12 }, async () => await openBrowser(stage.service.url).signIn(email, "wrong")),
    );
    const compared = answers.filter(({ status }) => status === 401).length;
    assert.ok(compared <= limits.signInFree + 1, `${compared} passwords were compared`);
  });

  test("an address is throttled, whatever names it tries", async () => {
    const browser = openBrowser(stage.service.url);
    let answer = await browser.signIn("name-0@example.com", "wrong");
    for (let tries = 1; tries < 300 && answer.status === 401; tries++)
      answer = await browser.signIn(`name-${tries}@example.com`, "wrong");
    assert.equal(answer.status, 429);
    assert.equal((await openBrowser(stage.service.url).signIn("name-x@example.com", "wrong")).status, 401);
  });

  test("a disabled operator's sessions end at once", async () => {
    const { browser, email, id } = await stage.signedIn();
    await stage.installation.command("operators", "disable", email);
    assert.equal((await browser.send("GET", "/me")).status, 401);
    assert.deepEqual(await stage.actions(id), ["operator.sign_in", "operator.disable"]);
  });

  test("the only admin can't be disabled", async () => {
    const { code, stderr } = await stage.installation.command("operators", "disable", "admin@localhost");
    assert.equal(code, 1);
    assert.match(stderr, /only admin/);
  });
});

describe("passwords", () => {
  test("a hash with older parameters is good, and is made anew", async () => {
    const { id, email } = await stage.operator();
    const nonce = randomBytes(16);
    const message = "an older password";
    const tag = argon2Sync("argon2id", {
      message,
      nonce,
      parallelism: 1,
      tagLength: 32,
      memory: 8_192,
      passes: 1,
    });
    const text = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
    await stage.db.query("update operator set password_hash = $2 where id = $1", [
      id,
      `$argon2id$v=19$m=8192,t=1,p=1$${text(nonce)}$${text(tag)}`,
    ]);
    await signAgain(stage.db, "operator");
    assert.equal((await openBrowser(stage.service.url).signIn(email, message)).status, 201);
    const [row] = await stage.db.query<{ hash: string }>(
      "select password_hash as hash from operator where id = $1",
      [id],
    );
    assert.match(row?.hash ?? "", /^\$argon2id\$v=19\$m=19456,t=2,p=1,keyid=/);
    assert.equal((await openBrowser(stage.service.url).signIn(email, message)).status, 201);
  });

  test("a change wants the present one, ends the other sessions, and gives this one another cookie", async () => {
    const { browser, email, password, id } = await stage.signedIn();
    const other = openBrowser(stage.service.url);
    await other.signIn(email, password);
    const next = "correct horse battery staple";
    const wrong = await browser.send("POST", "/me/password", { current_password: "no", new_password: next });
    assert.deepEqual([wrong.status, wrong.body.error.details[0].field], [422, "current_password"]);
    const short = await browser.send("POST", "/me/password", {
      current_password: password,
      new_password: "short",
    });
    assert.deepEqual([short.status, short.body.error.details[0].field], [422, "new_password"]);
    const before = browser.cookie;
    const changed = await browser.send("POST", "/me/password", {
      current_password: password,
      new_password: next,
    });
    assert.equal(changed.status, 200, changed.text);
    assert.notEqual(browser.cookie, before);
    assert.equal((await browser.send("GET", "/me")).status, 200);
    assert.equal((await other.send("GET", "/me")).status, 401);
    const old = openBrowser(stage.service.url);
    old.cookie = before;
    assert.equal((await old.send("GET", "/me")).status, 401);
    assert.equal((await openBrowser(stage.service.url).signIn(email, password)).status, 401);
    assert.equal((await openBrowser(stage.service.url).signIn(email, next)).status, 201);
    assert.ok((await stage.actions(id)).includes("operator.password_change"));
  });
});

describe("second factor", () => {
  test("set up by its first code; then a sign-in wants one, and none counts twice", async () => {
    const { browser, email, password, id } = await stage.signedIn();
    const { secret } = await browser.enrol(password);
    const without = await openBrowser(stage.service.url).signIn(email, password);
    assert.deepEqual([without.status, without.body.error.details[0].code], [401, "second_factor_required"]);
    assert.equal(
      (await openBrowser(stage.service.url).signIn(email, password, codeOf(secret))).status,
      401,
      "used to set up",
    );
    const code = codeOf(secret, 1);
    const again = openBrowser(stage.service.url);
    assert.equal((await again.signIn(email, password, code)).status, 201);
    assert.equal((await again.send("GET", "/me")).body.is_stepped_up, true);
    assert.equal((await openBrowser(stage.service.url).signIn(email, password, code)).status, 401, "used");
    const kept = JSON.stringify(await stage.db.query("select * from operator where id = $1", [id]));
    assert.ok(!kept.includes(secret), "the database does not have its key");
  });

  test("a recovery code is good once", async () => {
    const { browser, email, password } = await stage.signedIn();
    const { recoveryCodes } = await browser.enrol(password);
    assert.equal(recoveryCodes.length, limits.recoveryCodes);
    const code = recoveryCodes[3] ?? "";
    const other = openBrowser(stage.service.url);
    assert.equal((await other.signIn(email, password, code)).status, 201);
    assert.equal((await other.send("GET", "/me")).body.recovery_codes_left, limits.recoveryCodes - 1);
    assert.equal((await openBrowser(stage.service.url).signIn(email, password, code)).status, 401);
  });

  test("an admin without one does nothing else before, and what is dangerous wants a fresh code", async () => {
    const { browser, password } = await stage.signedIn("admin");
    const refused = await browser.send("GET", "/operators");
    assert.deepEqual([refused.status, refused.body.error.details[0].code], [403, "second_factor_missing"]);
    const { secret } = await browser.enrol(password);
    assert.equal((await browser.send("GET", "/operators")).status, 200);
    await stage.moveClock("10 minutes");
    const body = { email: "made-by-admin@example.com", role: "viewer" };
    const stale = await browser.send("POST", "/operators", body);
    assert.deepEqual([stale.status, stale.body.error.details[0].code], [403, "step_up_required"]);
    const before = browser.cookie;
    const stepped = await browser.send("POST", "/session/step-up", { code: codeOf(secret, 20) });
    assert.equal(stepped.status, 200, stepped.text);
    assert.notEqual(browser.cookie, before, "who had the cookie before has lost it");
    const created = await browser.send("POST", "/operators", body);
    assert.equal(created.status, 201, created.text);
    assert.equal(
      (await openBrowser(stage.service.url).signIn(body.email, created.body.password)).status,
      201,
    );
  });

  test("guessing codes in an open session is throttled", async () => {
    const { browser, password } = await stage.signedIn();
    await browser.enrol(password);
    await stage.stopClock();
    const statuses = [];
    for (let tries = 0; tries < limits.signInFree + 3; tries++)
      statuses.push((await browser.send("POST", "/session/step-up", { code: "000000" })).status);
    assert.equal(statuses[0], 422);
    assert.equal(statuses.at(-1), 429, statuses.join());
  });

  test("the shell takes a lost one away", async () => {
    const { browser, email, password, id } = await stage.signedIn();
    await browser.enrol(password);
    const { code, stderr } = await stage.installation.command("operators", "reset-totp", email);
    assert.equal(code, 0, stderr);
    assert.equal((await browser.send("GET", "/me")).status, 401, "sessions end");
    assert.equal((await openBrowser(stage.service.url).signIn(email, password)).status, 201);
    assert.deepEqual(await stage.actions(id), [
      "operator.sign_in",
      "operator.totp_enrol",
      "operator.totp_reset",
      "operator.sign_in",
    ]);
  });
});
