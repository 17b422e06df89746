// docs/decisions/0014, for `oauth2`: neither a token nor a code, a verifier, a `state`, a cookie or the client's secret is
// readable anywhere but on its way.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dumpDatabase, formsOf, readFolder, search, type Surface } from "../flow/canary-search.ts";
import { openOAuthBench, Visitor, type OAuthBench } from "./oauth-setup.ts";
import { CLIENT } from "./provider.ts";

let bench: OAuthBench;
before(async () => {
  bench = await openOAuthBench(() => []);
});
after(() => bench?.[Symbol.asyncDispose]());

test("after sign-ins, refreshes and failures: in no row, no log, no file, no page and no answer of the API", async () => {
  const { provider, caller, installation } = bench;
  const pages: Surface[] = [];
  const secrets = new Map<string, string>([["client secret", CLIENT.secret]]);
  const visit = async (change: (back: URL) => void): Promise<string> => {
    const session = await bench.session();
    const visitor = new Visitor();
    const left = await visitor.leave(session.hosted_url);
    const back = new URL(await visitor.signIn(left));
    for (const { key, value } of visitor.jar.getCookiesSync(session.hosted_url))
      if (key.includes("latchkey")) secrets.set(`cookie ${secrets.size}`, value);
    secrets.set(`state ${secrets.size}`, back.searchParams.get("state") ?? "");
    change(back);
    const page = await visitor.open(back.href);
    pages.push({
      place: "page",
      bytes: Buffer.from(`${page.location} ${page.text} ${page.setCookies.join()}`),
    });
    pages.push({ place: "hosted page", bytes: Buffer.from((await visitor.open(session.hosted_url)).text) });
    return session.id;
  };
  const run = async (id: string | null) => {
    const { body } = await caller.post("/blueprints/items/trigger", { credential_id: id });
    const ended = await caller.waitForRun(body.id, 60_000);
    pages.push({ place: "status", bytes: Buffer.from(JSON.stringify(ended)) });
    return ended.body.status;
  };
  provider.lifetime.seconds = 59;
  const good = await bench.status(await visit(() => undefined));
  await visit((back) => back.searchParams.set("iss", "https://evil.example"));
  await visit((back) => back.searchParams.set("code", "x".repeat(43)));
  assert.equal(await run(good.credential_id), "completed");
  assert.equal(await run(good.credential_id), "completed");
  const { db } = installation.database;
  await db.query("update oauth_token set version = version + 5");
  assert.equal(await run(good.credential_id), "failed");

  for (const { parameters } of provider.tokenRequests)
    for (const name of ["code", "code_verifier", "refresh_token"]) {
      const value = parameters[name];
      if (value !== undefined) secrets.set(`${name} ${secrets.size}`, value);
    }
  for (const token of provider.used) secrets.set(`access token ${secrets.size}`, token);
  assert.ok(secrets.size >= 15, [...secrets.keys()].join());
  const surfaces = [
    ...(await dumpDatabase(db)),
    ...readFolder(installation.dataFolder),
    { place: "logs", bytes: Buffer.from(installation.logs()) },
    ...pages,
  ];
  // The search finds what is there: the session's id is in rows.
  assert.notDeepEqual(search(surfaces, formsOf(String(good.credential_id))), []);
  for (const [name, secret] of secrets) {
    const found = search(surfaces, formsOf(secret)).map(({ place, form }) => `${name}: ${place} (${form})`);
    assert.deepEqual(found, []);
  }
});
