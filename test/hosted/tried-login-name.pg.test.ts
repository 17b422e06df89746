// A login name is tried so often, from any address: the address that asks has more tries than the name, and sessions of its own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load } from "cheerio";
import { limitTries } from "#actions/keys/limit-rate.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { TokenBuckets } from "#lib/token-bucket.ts";
import { submit } from "./form-visitor.ts";
import { setUpHosted, type Hosted } from "./hosted-setup.ts";
import {
  startLoginTarget,
  STRATEGY,
  submitToTry,
  triedDocuments,
  type LoginTarget,
} from "./tried-login-stage.ts";

let target: LoginTarget;
let hosted: Hosted;
before(async () => {
  target = await startLoginTarget();
  hosted = await setUpHosted(...triedDocuments(target.origin));
});
after(async () => {
  target.close();
  await hosted[Symbol.asyncDispose]();
});

test("one login name is tried so often and no more, in whatever sessions and spelling", async () => {
  const name = "much-tried@acme.example";
  for (let tries = 0; tries < limits.loginTriesOfName.burst; tries++) {
    const typed = tries % 2 === 0 ? name : ` ${name.toUpperCase()}`;
    const session = await hosted.session({ strategy_id: STRATEGY });
    await submitToTry(session.hosted_url, typed, "wrong");
  }
  const session = await hosted.session({ strategy_id: STRATEGY });
  const page = load((await submit(session.hosted_url, { username: name, password: "wrong" })).text);
  assert.match(
    page("main").text(),
    /Too many attempts.*Nothing was saved.*You can try again in \d+ minutes/s,
  );
  assert.equal(await hosted.credentialsOf(session.id), 0);
  // Others are tried as before.
  await submitToTry(session.hosted_url, "somebody-else@acme.example", "wrong");
});

test("an address that has no tries left uses up none of a name's", () => {
  const services = { buckets: new TokenBuckets(() => 0) };
  const ask = (client: string, name: string | null): void =>
    limitTries(services, "acme/northwind", { client, name });
  for (let tries = 0; tries < limits.loginTries.burst; tries++) ask("192.0.2.1", null);
  for (let tries = 0; tries <= limits.loginTriesOfName.burst; tries++)
    assert.throws(() => ask("192.0.2.1", "ada"), Problem);
  ask("198.51.100.1", "ada");
});
