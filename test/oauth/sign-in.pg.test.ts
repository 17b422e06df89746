// docs/decisions/0020: the authorization code flow with PKCE against a real provider, and everything that it must refuse.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { itemsBlueprint, oauthStrategy, openOAuthBench, Visitor, type OAuthBench } from "./oauth-setup.ts";

let bench: OAuthBench;

before(async () => {
  bench = await openOAuthBench((provider) => [
    oauthStrategy(provider, "strat_other"),
    oauthStrategy(
      provider,
      "strat_fields",
      ', ui_locales: "{{ $credential.locale }}"',
      "fields: [{ key: locale, label: Language, type: text, max_length: 5 }, { key: pin, label: PIN, type: password }]",
    ),
    itemsBlueprint("other", "strat_other"),
  ]);
});
after(() => bench?.[Symbol.asyncDispose]());

test("the end user signs in at the target and comes back: 303 to return_url, a credential, and a run with its token", async () => {
  const session = await bench.session("strat_northwind", "https://app.acme.example/back?x=1");
  const visitor = new Visitor();
  const url = new URL(await visitor.leave(session.hosted_url));
  assert.equal(url.origin, bench.provider.issuer);
  assert.equal(url.searchParams.get("code_challenge_method"), "S256");
  assert.equal(url.searchParams.get("redirect_uri"), bench.redirectUri());
  assert.equal(Buffer.from(url.searchParams.get("state") ?? "", "base64url").length, 32);
  assert.equal((await bench.status(session.id)).status, "pending");
  const back = await visitor.open(await visitor.signIn(url.href));
  assert.equal(back.status, 303, back.text);
  assert.equal(back.location, `https://app.acme.example/back?x=1&session_id=${session.id}`);
  const { status, credential_id: id } = await bench.status(session.id);
  assert.equal(status, "completed");
  const run = await bench.caller.post("/blueprints/items/trigger", { credential_id: id });
  const { body } = await bench.caller.waitForRun(run.body.id);
  assert.equal(body.status, "completed", bench.installation.logs().split("\n").slice(-5).join("\n"));
  assert.equal(bench.provider.used.length, 1);
});

test("fields of the strategy are asked for first, checked, and may stand in the parameters; a wrong one leaves nowhere", async () => {
  const session = await bench.session("strat_fields");
  const visitor = new Visitor();
  await assert.rejects(visitor.leave(session.hosted_url, { locale: "toolong", pin: "4711" }), /stayed: 422/);
  const url = new URL(await visitor.leave(session.hosted_url, { locale: "de&x=", pin: "pin-canary-4711" }));
  assert.equal(url.searchParams.get("ui_locales"), "de&x=");
  assert.ok(!url.href.includes("pin-canary"));
  assert.equal((await visitor.open(await visitor.signIn(url.href))).status, 200);
  assert.equal((await bench.status(session.id)).status, "completed");
});

/** A session whose end user has signed in at the provider and is about to come back. */
async function arrive(strategy?: string) {
  const session = await bench.session(strategy);
  const visitor = new Visitor();
  const back = new URL(await visitor.signIn(await visitor.leave(session.hosted_url)));
  return { session, visitor, back };
}
type Arrived = Awaited<ReturnType<typeof arrive>>;

const changed = (url: URL, change: (parameters: URLSearchParams) => void): string => {
  const copy = new URL(url);
  change(copy.searchParams);
  return copy.href;
};
const database = () => bench.installation.database.db;

/** An address, and the browser that opens it when it is another one. */
type Coming = string | { readonly visitor: Visitor; readonly url: string };

/** Each comes back in a way that must connect nothing; 400 leads at most back to the link, 303 leads to the page to try again. */
const REFUSED: Record<
  string,
  { readonly status: number; readonly come: (arrived: Arrived) => Promise<Coming> | Coming }
> = {
  "state missing": { status: 400, come: ({ back }) => changed(back, (p) => p.delete("state")) },
  "state empty": { status: 400, come: ({ back }) => changed(back, (p) => p.set("state", "")) },
  "state of nobody": {
    status: 400,
    come: ({ back }) => changed(back, (p) => p.set("state", "A".repeat(43))),
  },
  "state doubled": {
    status: 400,
    come: ({ back }) => changed(back, (p) => p.append("state", p.get("state") ?? "")),
  },
  "state used before": {
    status: 400,
    come: async ({ back, visitor }) => {
      const state = back.searchParams.get("state") ?? "";
      const first = await visitor.open(
        `${bench.redirectUri()}?error=access_denied&state=${state}&iss=${bench.provider.issuer}`,
      );
      assert.match(first.location ?? "", /\?again=refused$/);
      return back.href;
    },
  },
  "state over ten minutes old": {
    status: 400,
    come: async ({ back }) => {
      await bench.moveClock("10 minutes");
      return back.href;
    },
  },
  "iss of another server": {
    status: 303,
    come: ({ back }) => changed(back, (p) => p.set("iss", "https://evil.example")),
  },
  "iss missing, though the server says that it sends it": {
    status: 303,
    come: ({ back }) => changed(back, (p) => p.delete("iss")),
  },
  "iss doubled": {
    status: 303,
    come: ({ back }) => changed(back, (p) => p.append("iss", p.get("iss") ?? "")),
  },
  "code missing": { status: 303, come: ({ back }) => changed(back, (p) => p.delete("code")) },
  "code doubled": { status: 303, come: ({ back }) => changed(back, (p) => p.append("code", "x")) },
  "code of nobody": {
    status: 303,
    come: ({ back }) => changed(back, (p) => p.set("code", "x".repeat(43))),
  },
  "code of another sign-in": {
    status: 303,
    come: async ({ back }) => {
      const other = await arrive();
      return changed(back, (p) => p.set("code", other.back.searchParams.get("code") ?? ""));
    },
  },
  "code that was exchanged before": {
    status: 303,
    come: async ({ back }) => {
      const other = await arrive();
      await other.visitor.open(other.back.href);
      assert.equal((await bench.status(other.session.id)).status, "completed");
      return changed(back, (p) => p.set("code", other.back.searchParams.get("code") ?? ""));
    },
  },
  "code without a challenge (PKCE downgrade)": {
    status: 303,
    come: async ({ session, visitor }) => {
      const stripped = changed(new URL(await visitor.leave(session.hosted_url)), (p) => {
        p.delete("code_challenge");
        p.delete("code_challenge_method");
      });
      return await visitor.signIn(stripped);
    },
  },
  "in another browser": { status: 400, come: ({ back }) => ({ visitor: new Visitor(), url: back.href }) },
  "with the answer of another session, whose browser is another": {
    status: 400,
    come: async () => (await arrive()).back.href,
  },
  "with a cookie of another sign-in": {
    status: 400,
    come: async ({ back, visitor }) => {
      const mine = visitor.jar
        .getCookiesSync(back.href)
        .find(({ key }) => key.startsWith("latchkey-sign-in-"));
      const stranger = new Visitor();
      stranger.jar.setCookieSync(`${mine?.key}=${"A".repeat(43)}; Path=/`, back.href);
      return { visitor: stranger, url: back.href };
    },
  },
  "at the redirect URI of another strategy (mix-up)": {
    status: 400,
    come: ({ back }) => back.href.replace("/strat_northwind?", "/strat_other?"),
  },
  "at the redirect URI of another account": {
    status: 400,
    come: ({ back }) => back.href.replace("/oauth/acme/", "/oauth/other/"),
  },
  "error=access_denied": {
    status: 303,
    come: async ({ session, visitor }) =>
      await visitor.signIn(await visitor.leave(session.hosted_url), "cancel"),
  },
  "error=server_error": {
    status: 303,
    come: ({ back }) => {
      const { state = "", iss = "" } = Object.fromEntries(back.searchParams);
      const answer = new URLSearchParams({ error: "server_error", state, iss });
      return `${bench.redirectUri()}?${answer.toString()}`;
    },
  },
  "error without state": { status: 400, come: () => `${bench.redirectUri()}?error=access_denied` },
  "nothing at all": { status: 400, come: () => bench.redirectUri() },
};

for (const [name, { status, come }] of Object.entries(REFUSED)) {
  test(`refused, and the session stays pending: ${name}`, async (t) => {
    t.after(async () => await bench.moveClock("0"));
    const arrived = await arrive();
    const how = await come(arrived);
    const { visitor, url } = typeof how === "string" ? { visitor: arrived.visitor, url: how } : how;
    const [credentials, exchanged] = [await bench.credentialCount(), successes()];
    const page = await visitor.open(url);
    assert.equal(page.status, status, page.text);
    assert.equal(await bench.credentialCount(), credentials);
    assert.equal(successes(), exchanged, "no code was exchanged");
    await bench.moveClock("0");
    assert.equal((await bench.status(arrived.session.id)).status, "pending");
    if (status === 400) {
      assert.equal(page.location, null);
      // The browser that it belongs to is led back to its link; nobody else is told of the session.
      assert.equal(page.text.includes(arrived.session.hosted_url), name === "state used before");
    } else {
      const again = name === "error=access_denied" ? "refused" : "failed";
      assert.equal(page.location, `${arrived.session.hosted_url}?again=${again}`);
      const said = again === "refused" ? /<bdi>Northwind<\/bdi> is not connected/ : /could not be finished/;
      assert.match((await visitor.open(page.location ?? "")).text, said);
      // Operators see why, not in the log alone.
      const { stdout } = await bench.installation.command("sessions", "list", "--json");
      const seen = JSON.parse(stdout).items.find(({ id }: any) => id === arrived.session.id);
      assert.match(seen.sign_in_failure, /\w/);
      assert.ok(
        bench.installation.logs().includes(JSON.stringify(seen.sign_in_failure)),
        seen.sign_in_failure,
      );
      // And the page that says so is the one to try again on.
      const back = await visitor.signIn(await visitor.leave(arrived.session.hosted_url));
      assert.equal((await visitor.open(back)).status, 200);
      assert.equal((await bench.status(arrived.session.id)).status, "completed");
    }
  });
}

const successes = (): number =>
  bench.provider.tokenRequests.filter(({ grant, ok }) => grant === "authorization_code" && ok).length;

test("the callback twice, one after the other and at once: one credential, one exchange", async () => {
  const { session, visitor, back } = await arrive();
  const before = [await bench.credentialCount(), successes()] as const;
  const pages = await Promise.all(Array.from({ length: 8 }, async () => await visitor.open(back.href)));
  assert.ok(pages.some((page) => page.status === 200));
  assert.ok(pages.every((page) => [200, 400].includes(page.status)));
  assert.equal((await visitor.open(back.href)).status, 200, "as the first one");
  assert.deepEqual([await bench.credentialCount(), successes()], [before[0] + 1, before[1] + 1]);
  assert.equal((await bench.status(session.id)).status, "completed");
});

test("a HEAD request (a preview of the link) does not consume the link", async () => {
  const { session, visitor, back } = await arrive();
  const cookie = visitor.jar.getCookieStringSync(back.href);
  assert.equal((await fetch(back, { method: "HEAD", headers: { cookie } })).status, 404);
  assert.equal((await visitor.open(back.href)).status, 200);
  assert.equal((await bench.status(session.id)).status, "completed");
});

test("after the session has expired: 410, and no code is exchanged", async () => {
  const { session, visitor, back } = await arrive();
  const exchanged = successes();
  await database().query("update credential_session set expires_at = app_now() where id = $1", [session.id]);
  assert.equal((await visitor.open(back.href)).status, 410);
  assert.equal(successes(), exchanged);
  assert.equal((await bench.status(session.id)).status, "expired");
});

test("after another tab has completed the session: its result, and no second credential", async () => {
  const { session, visitor, back } = await arrive();
  const second = await visitor.signIn(await visitor.leave(session.hosted_url));
  const before = await bench.credentialCount();
  assert.equal((await visitor.open(back.href)).status, 200);
  const { credential_id: id } = await bench.status(session.id);
  const exchanged = successes();
  assert.equal((await visitor.open(second)).status, 200);
  assert.equal(successes(), exchanged);
  assert.equal(await bench.credentialCount(), before + 1);
  assert.equal((await bench.status(session.id)).credential_id, id);
});

test("completed by another tab while the code is exchanged: those tokens are dropped and taken back at the target", async () => {
  const { session, visitor, back } = await arrive();
  const second = await visitor.signIn(await visitor.leave(session.hosted_url));
  const before = [await bench.credentialCount(), bench.provider.revoked.count] as const;
  const hold = bench.provider.holdToken();
  const slow = visitor.open(back.href);
  await hold.reached;
  assert.equal((await visitor.open(second)).status, 200);
  const { credential_id: id } = await bench.status(session.id);
  hold.release();
  assert.equal((await slow).status, 200);
  assert.deepEqual(
    [await bench.credentialCount(), bench.provider.revoked.count],
    [before[0] + 1, before[1] + 1],
  );
  assert.equal((await bench.status(session.id)).credential_id, id);
});
