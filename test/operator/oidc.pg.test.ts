// docs/single-sign-on.md: single sign-on of operators at a real provider, and what of its answers counts for nothing.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { limitPassword } from "#db/operators/operators.ts";
import { newFolder, startLatchkey } from "../cli/program.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { CLIENT } from "../oauth/provider.ts";
import { Visitor } from "../oauth/oauth-setup.ts";
import { openBrowser, sendPlain, type Browser, type OperatorAnswer } from "./browser.ts";
import { finish, leave, openOidcStage, type OidcStage } from "./oidc-stage.ts";
import { signAgain } from "../sign-again.ts";

let stage: OidcStage;

before(async () => {
  stage = await openOidcStage();
});
after(async () => await stage?.[Symbol.asyncDispose]());

const codeOf = (answer: OperatorAnswer): unknown => answer.body?.error?.details?.[0]?.code;

/** Somebody who is an operator, and whom the provider knows by the same address. */
async function somebody(role: "admin" | "operator" | "viewer" = "viewer") {
  const operator = await stage.operators.operator(role);
  const login = operator.email.split("@")[0] ?? "";
  stage.people.set(login, { email: operator.email.toUpperCase(), email_verified: true });
  return { ...operator, login };
}

const finishStepUp = async (browser: Browser, back: string): Promise<OperatorAnswer> =>
  await browser.send("POST", "/session/step-up/oidc", { query: new URL(back).search.slice(1) });

/** Refusals so far of those who are nobody here: on record together, when the minute or the service is over. */
const counted: Record<string, number> = {};
const OWN_ENTRIES = new Set(["oidc_taken", "oidc_disabled"]);

async function countEntries(reason: string): Promise<number> {
  const rows = await stage.operators.db.query<{ detail: string }>(
    "select detail from audit_entry where action = 'operator.sign_in_failed'",
  );
  return rows.filter(({ detail }) => JSON.parse(detail).reason === reason).length;
}

async function refused(ask: () => Promise<OperatorAnswer>, code: string): Promise<void> {
  const before = await countEntries(code);
  const { status, text, body } = await ask();
  assert.deepEqual([status, body?.error?.details?.[0]?.code], [401, code], text);
  assert.equal(await countEntries(code), before + (OWN_ENTRIES.has(code) ? 1 : 0));
  if (!OWN_ENTRIES.has(code)) counted[code] = (counted[code] ?? 0) + 1;
}

describe("the way in", () => {
  test("the ways are told; one leaves with PKCE, state and nonce, and comes back into a session", async () => {
    const { login, id, email } = await somebody();
    // Who signs in at the provider has no password to change.
    await limitPassword(stage.operators.db, id, 60_000);
    const browser = stage.browser();
    const ways = await browser.send("GET", "/session/methods");
    assert.deepEqual(ways.body, { password: true, oidc: { label: "Example ID" } });
    assert.deepEqual((await browser.send("GET", "/session/ways")).body, ways.body, "the former path");
    const answer = await browser.send("POST", "/session/oidc/begin", { return_to: "/runs?status=failed" });
    assert.equal(answer.status, 201, answer.text);
    const [cookie = ""] = answer.headers["set-cookie"] ?? [];
    assert.match(
      cookie,
      /^latchkey_operator_oidc_[0-9a-f]{16}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=600$/,
    );
    const url = new URL(answer.body.url);
    assert.equal(url.origin, stage.provider.issuer);
    const sent = Object.fromEntries(url.searchParams);
    assert.deepEqual(
      [
        sent["response_type"],
        sent["client_id"],
        sent["scope"],
        sent["code_challenge_method"],
        sent["prompt"],
      ],
      ["code", CLIENT.id, "openid email", "S256", undefined],
    );
    assert.equal(sent["redirect_uri"], `${stage.operators.service.url}/dashboard/oidc`);
    for (const name of ["state", "nonce", "code_challenge"]) assert.match(sent[name] ?? "", /^[\w-]{43,44}$/);
    const back = new URL(await new Visitor().signIn(url.href, "agree", login));
    const done = await finish(browser, back.search.slice(1));
    assert.equal(done.status, 201, `${done.text}\n${stage.operators.installation.logs()}`);
    assert.deepEqual(
      [done.body.return_to, done.body.me.email, done.body.me.signed_in_by, done.body.me.needs],
      ["/runs?status=failed", email, "oidc", null],
    );
    assert.equal((await browser.send("GET", "/me")).status, 200);
    const [first] = (await browser.send("GET", "/me/sessions")).body.items;
    assert.equal(first.signed_in_by, "oidc");
    assert.deepEqual(await stage.operators.actions(id), ["operator.oidc_link", "operator.sign_in"]);
  });

  test("later it is who they are there that counts, and no address of mail", async () => {
    const { login, id } = await somebody();
    assert.equal((await stage.signIn(stage.browser(), login)).status, 201);
    stage.people.set(login, { email: "another@example.com", email_verified: false });
    assert.equal((await stage.signIn(stage.browser(), login)).status, 201);
    assert.deepEqual(await stage.operators.actions(id), [
      "operator.oidc_link",
      "operator.sign_in",
      "operator.sign_in",
    ]);
  });

  test("a session that the browser came with ends", async () => {
    const { login, email, password } = await somebody();
    const browser = stage.browser();
    await browser.signIn(email, password);
    const before = openBrowser(stage.operators.service.url);
    before.cookie = browser.cookie;
    assert.equal((await stage.signIn(browser, login)).status, 201);
    assert.equal((await before.send("GET", "/me")).status, 401);
  });

  test("an admin needs no app of ours: the provider answers for it, and is asked again before what is dangerous", async () => {
    const { login, id } = await somebody("admin");
    const other = await somebody();
    const browser = stage.browser();
    const done = await stage.signIn(browser, login);
    // The provider does not say when it has asked.
    assert.deepEqual([done.body.me.is_stepped_up, done.body.me.step_up_by], [false, ["oidc"]]);
    assert.equal((await browser.send("GET", "/operators")).status, 200);
    const disable = async () => await browser.send("POST", `/operators/${other.id}/disable`);
    assert.equal(codeOf(await disable()), "step_up_required");

    // The person who is asked there must be the same one.
    const stranger = await leave(browser, "/session/step-up/oidc/begin", undefined);
    assert.deepEqual(
      ["prompt", "max_age"].map((name) => new URL(stranger).searchParams.get(name)),
      ["login", "0"],
    );
    const byOther = await finishStepUp(browser, await new Visitor().signIn(stranger, "agree", other.login));
    assert.deepEqual([byOther.status, codeOf(byOther)], [403, "oidc_taken"]);
    assert.equal(codeOf(await disable()), "step_up_required");

    const session = browser.cookie.split("; ")[0] ?? "";
    const url = await leave(browser, "/session/step-up/oidc/begin", undefined);
    const back = await new Visitor().signIn(url, "agree", login);
    // A `state` for this is none for a sign-in.
    await refused(() => finish(browser, new URL(back).search.slice(1)), "oidc_state");
    const done2 = await finishStepUp(browser, back);
    assert.equal(done2.status, 200, done2.text);
    assert.notEqual(browser.cookie, session);
    assert.equal((await disable()).status, 204);
    assert.ok((await stage.operators.actions(id)).includes("operator.step_up"));
  });

  test("`latchkey login` is signed in by whom the provider vouches for", async () => {
    const { login, email } = await somebody("operator");
    const elsewhere = newFolder();
    const { url } = stage.operators.service;
    const command = startLatchkey(
      ["login", "--url", url, "--name", "ana@laptop"],
      { LATCHKEY_DATA_DIR: join(elsewhere, "none"), LATCHKEY_CONFIG_DIR: elsewhere },
      { cwd: elsewhere },
    );
    const page = await eventually(
      "it shows where to go",
      () => /Open (\S+) in a browser/.exec(command.stderr())?.[1],
      PATIENCE_MS,
    );
    const { pathname, search, searchParams } = new URL(page);
    // As the page's address is kept by a browser that must sign in first.
    const browser = stage.browser();
    const returnTo = `${pathname.replace("/dashboard", "")}${search}`;
    const provider = await leave(browser, "/session/oidc/begin", { return_to: returnTo });
    const back = new URL(await new Visitor().signIn(provider, "agree", login));
    const done = await finish(browser, back.search.slice(1));
    assert.deepEqual([done.status, done.body?.return_to], [201, returnTo], done.text);
    const code = searchParams.get("code");
    assert.equal((await browser.send("GET", `/device-sign-ins/${code}`)).body.name, "ana@laptop");
    const approve = async (): Promise<OperatorAnswer> =>
      await browser.send("POST", `/device-sign-ins/${code}/approve`, {
        role: "operator",
        lifetime_seconds: 3_600,
      });
    assert.equal(codeOf(await approve()), "step_up_required");
    const again = await leave(browser, "/session/step-up/oidc/begin", undefined);
    const steppedUp = await finishStepUp(browser, await new Visitor().signIn(again, "agree", login));
    assert.equal(steppedUp.status, 200, steppedUp.text);
    const approved = await approve();
    assert.equal(approved.status, 200, approved.text);
    const { code: exitCode, stdout, stderr } = await command.ended;
    assert.equal(exitCode, 0, stderr);
    assert.ok(stdout.startsWith(`Signed in to ${url} as ${email} (operator), until `), stdout);
    const { token } = JSON.parse(readFileSync(join(elsewhere, "logins.json"), "utf8")).services[url];
    rmSync(elsewhere, { recursive: true });
    assert.equal((await stage.operators.withToken(token, "GET", "/runs")).status, 200);
    // Disabled here, whatever the provider says of them.
    await stage.operators.installation.command("operators", "disable", email);
    assert.equal((await stage.operators.withToken(token, "GET", "/runs")).status, 401);
  });

  test("what an admin unlinks is anybody's who has the address; its sessions end", async () => {
    const { login, id, email } = await somebody();
    const browser = stage.browser();
    await stage.signIn(browser, login);
    stage.people.set("newcomer", { email, email_verified: true });
    await refused(() => stage.signIn(stage.browser(), "newcomer"), "oidc_taken");
    const { code, stderr } = await stage.operators.installation.command("operators", "unlink", email);
    assert.equal(code, 0, stderr);
    assert.equal((await browser.send("GET", "/me")).status, 401);
    assert.equal((await stage.signIn(stage.browser(), "newcomer")).status, 201);
    await refused(() => stage.signIn(stage.browser(), login), "oidc_taken");
    assert.ok((await stage.operators.actions(id)).includes("operator.oidc_unlink"));
  });
});

describe("what counts for nothing", () => {
  test("who is nobody here, is not verified, or is disabled", async () => {
    stage.people.set("nobody", { email: "nobody@example.com", email_verified: true });
    await refused(() => stage.signIn(stage.browser(), "nobody"), "oidc_unknown");
    stage.people.set("plain", {});
    await refused(() => stage.signIn(stage.browser(), "plain"), "oidc_unverified");
    const { login, email } = await somebody();
    for (const isVerified of [false, "true", undefined]) {
      stage.people.set(login, { email, email_verified: isVerified });
      await refused(() => stage.signIn(stage.browser(), login), "oidc_unverified");
    }
    stage.people.set(login, { email, email_verified: true });
    await stage.operators.installation.command("operators", "disable", email);
    await refused(() => stage.signIn(stage.browser(), login), "oidc_disabled");
  });

  test("an address that is an operator's only when Unicode folds it onto ASCII", async () => {
    const { login, email, id } = await somebody();
    const kelvin = `\u212A${email}`;
    await stage.operators.db.query("update operator set email = 'k' || email where id = $1", [id]);
    await signAgain(stage.operators.db, "operator");
    assert.equal(kelvin.toLowerCase(), `k${email}`);
    for (const other of [kelvin, ` k${email}`, `k${email}\u00a0`]) {
      stage.people.set(login, { email: other, email_verified: true });
      await refused(() => stage.signIn(stage.browser(), login), "oidc_unknown");
    }
    assert.ok(!(await stage.operators.actions(id)).includes("operator.oidc_link"));
    // Case alone is no difference.
    stage.people.set(login, { email: `K${email.toUpperCase()}`, email_verified: true });
    assert.equal((await stage.signIn(stage.browser(), login)).status, 201);
  });

  test("a `state` that is missing, empty, doubled, another, another browser's, used, or too late", async () => {
    const { login } = await somebody();
    const browser = stage.browser();
    const query = await stage.away(browser, login);
    const held = browser.cookie;
    const state = new URLSearchParams(query).get("state") ?? "";
    const other = new URLSearchParams(await stage.away(stage.browser(), login)).get("state") ?? "";
    const withState = (...states: readonly string[]): string => {
      const changed = new URLSearchParams(query);
      changed.delete("state");
      for (const each of states) changed.append("state", each);
      return changed.toString();
    };
    for (const states of [[], [""], [state, state], [other], [state.slice(1)], [`u${state.slice(1)}`]])
      await refused(() => finish(browser, withState(...states)), "oidc_state");
    await refused(() => finish(stage.browser(), query), "oidc_state");
    const forged = stage.browser();
    forged.cookie = held.replace(/=.*/, `=${"A".repeat(43)}`);
    await refused(() => finish(forged, query), "oidc_state");
    browser.cookie = held;
    assert.equal((await finish(browser, query)).status, 201);
    browser.cookie = held;
    await refused(() => finish(browser, query), "oidc_state");
    const late = stage.browser();
    const lateQuery = await stage.away(late, login);
    await stage.operators.moveClock("11 minutes");
    await refused(() => finish(late, lateQuery), "oidc_state");
    await stage.operators.moveClock("0");
  });

  test("an answer of another issuer, a code that was used, is of another trip, or is missing; and a no", async () => {
    const { login } = await somebody();
    const tamper = async (change: (query: URLSearchParams) => void): Promise<OperatorAnswer> => {
      const browser = stage.browser();
      const query = new URLSearchParams(await stage.away(browser, login));
      change(query);
      return await finish(browser, query.toString());
    };
    const used = new URLSearchParams(await stage.away(stage.browser(), login)).get("code") ?? "";
    await refused(() => tamper((query) => query.set("iss", "https://evil.example")), "oidc_failed");
    await refused(() => tamper((query) => query.delete("iss")), "oidc_failed");
    await refused(() => tamper((query) => query.append("code", "another")), "oidc_failed");
    await refused(() => tamper((query) => query.delete("code")), "oidc_failed");
    // PKCE: its verifier is of another `state`.
    await refused(() => tamper((query) => query.set("code", used)), "oidc_failed");
    const browser = stage.browser();
    await refused(async () => finish(browser, await stage.away(browser, login, "cancel")), "oidc_denied");
  });

  test("an ID token with another nonce", async () => {
    const { login } = await somebody();
    const browser = stage.browser();
    const url = new URL(await leave(browser, "/session/oidc/begin", {}));
    url.searchParams.set("nonce", "somebody-elses");
    const back = await new Visitor().signIn(url.href, "agree", login);
    await refused(() => finish(browser, new URL(back).search.slice(1)), "oidc_failed");
  });

  test("a page elsewhere can begin nothing, and no address is given back that leads elsewhere", async () => {
    const browser = stage.browser();
    for (const path of ["/session/oidc/begin", "/session/oidc"]) {
      const foreign = await browser.send("POST", path, {}, { Origin: "https://evil.example" });
      assert.deepEqual([foreign.status, codeOf(foreign)], [403, "csrf"]);
    }
    for (const returnTo of ["https://evil.example", "//evil.example", "/\\evil.example", "runs", "/\n"]) {
      const answer = await browser.send("POST", "/session/oidc/begin", { return_to: returnTo });
      assert.equal(answer.status, 422, returnTo);
    }
  });

  test("a session by password is not confirmed at the provider, and nothing is confirmed without a session", async () => {
    const { browser } = await stage.operators.signedIn();
    assert.equal((await browser.send("POST", "/session/step-up/oidc/begin")).status, 409);
    assert.equal((await stage.browser().send("POST", "/session/step-up/oidc/begin")).status, 401);
  });

  test("an address is throttled", async () => {
    const browser = stage.browser();
    let answer = await finish(browser, "state=none");
    for (let tries = 0; tries < 300 && answer.status === 401; tries++) {
      counted["oidc_state"] = (counted["oidc_state"] ?? 0) + 1;
      answer = await finish(browser, "state=none");
    }
    assert.equal(answer.status, 429);
    // Who is on the way, and who has signed in before, is kept in by nothing that strangers do from there.
    const { login } = await somebody();
    const arriving = stage.browser();
    const query = await stage.away(arriving, login);
    const asked = async (from: Browser, path: string, body: object) =>
      await sendPlain(
        `${stage.operators.service.url}/operator/v1${path}`,
        "POST",
        {
          "Content-Type": "application/json",
          "X-CSRF-Token": "x",
          "Content-Length": String(JSON.stringify(body).length),
          Cookie: [from.cookie, from.known].join("; "),
        },
        JSON.stringify(body),
        browser.address,
      );
    assert.equal((await asked(arriving, "/session/oidc", { query })).status, 201);
    assert.equal((await asked(stage.browser(), "/session/oidc/begin", {})).status, 429);
    const known = stage.browser();
    assert.equal((await stage.signIn(known, login)).status, 201);
    assert.equal((await asked(known, "/session/oidc/begin", {})).status, 201);
  });
});

test("nothing of the exchange is in a log, in the audit log or in the database", async () => {
  const { login } = await somebody();
  const browser = stage.browser();
  const query = await stage.away(browser, login);
  const { parameters } = await (async () => {
    assert.equal((await finish(browser, query)).status, 201);
    return stage.provider.tokenRequests.at(-1) ?? assert.fail();
  })();
  const { db, installation } = stage.operators;
  const entries = await db.query("select * from audit_entry");
  const tables = await db.query("select * from operator_oidc_attempt, operator, operator_session");
  const kept = `${installation.logs()}${JSON.stringify(entries)}${JSON.stringify(tables)}`;
  const code = new URLSearchParams(query).get("code") ?? "";
  assert.ok(code.length > 20 && (parameters["code_verifier"] ?? "").length >= 43);
  for (const secret of [code, parameters["code_verifier"] ?? "", CLIENT.secret])
    assert.ok(!kept.includes(secret), secret);
  // A token: random ids have no such two parts.
  assert.doesNotMatch(kept, /eyJ[\w-]+\.eyJ/);
});

test("M9: refusals of those who are nobody here are on record as their number", async () => {
  const { db, service } = stage.operators;
  await service.end();
  const rows = await db.query<{ subject: string; detail: string }>(
    `select subject_id as subject, detail from audit_entry
     where action = 'operator.sign_in_failed' and subject_id = 'unknown'`,
  );
  const sums: Record<string, number> = {};
  for (const { detail } of rows)
    for (const [reason, times] of Object.entries<number>(JSON.parse(detail)))
      sums[reason] = (sums[reason] ?? 0) + times;
  const count = Object.values(counted).reduce((all, times) => all + times, 0);
  assert.deepEqual(sums, { count, ...counted });
  assert.ok(rows.length < 10, `${rows.length} entries`);
});
