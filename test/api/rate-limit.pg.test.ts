import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

const account = (rate: string): string => `account: acme\nname: Acme\nrate_limit: ${rate}`;
const STRATEGY =
  "strategy: strat_notes\naccount: acme\nname: Notes\nfields: [{ key: note, label: Note, type: text }]\nlogin: { type: none }";

let installation: Installation & AsyncDisposable;
let service: RunningService;

before(async () => {
  installation = await install();
  await installation.apply(account("{ per_second: 2, burst: 5 }"), STRATEGY);
  service = await installation.serve();
});
after(async () => await installation[Symbol.asyncDispose]());

const newCaller = async (): Promise<Caller> => openCaller(service.url, await installation.createKey("acme"));

test("Spec, Errors: a key over its limit is answered 429 rate_limit_exceeded, and told when to come again", async () => {
  const caller = await newCaller();
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => caller.post("/credential-sessions", { strategy_id: "strat_notes" })),
  );
  const made = answers.filter((answer) => answer.status === 201);
  const refused = answers.filter((answer) => answer.status === 429);
  assert.equal(made.length + refused.length, 12);
  assert.ok(made.length >= 5 && made.length <= 8, `${made.length} of 12 were let through`);
  for (const answer of refused) {
    assert.equal(answer.body.error.type, "rate_limit_exceeded");
    assert.deepEqual(Object.keys(answer.body), ["error"]);
    assert.match(answer.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
  }
  assert.match(made[0]?.headers.get("ratelimit") ?? "", /^"calls";r=\d+;t=\d+$/);
  assert.equal(made[0]?.headers.get("ratelimit-policy"), '"calls";q=5;w=3');
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  assert.equal((await caller.post("/credential-sessions", { strategy_id: "strat_notes" })).status, 201);
});

test("a refused request changed nothing and recorded nothing under its idempotency key", async () => {
  const caller = await newCaller();
  const before_ = await sessions();
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      caller.post(
        "/credential-sessions",
        { strategy_id: "strat_notes" },
        { "idempotency-key": `limited-${index}` },
      ),
    ),
  );
  assert.equal((await sessions()) - before_, answers.filter((answer) => answer.status === 201).length);
});

test("each key has a bucket of its own, and polling one ten times as large", async () => {
  const [first, second] = [await newCaller(), await newCaller()];
  const session = await first.post("/credential-sessions", { strategy_id: "strat_notes" });
  await Promise.all(Array.from({ length: 10 }, () => first.post("/credential-sessions", {})));
  assert.equal((await first.post("/credential-sessions", {})).status, 429);
  assert.equal((await second.post("/credential-sessions", { strategy_id: "strat_notes" })).status, 201);
  const polls = await Promise.all(
    Array.from({ length: 40 }, () => first.get(`/credential-sessions/${session.body.id}`)),
  );
  assert.deepEqual([...new Set(polls.map((answer) => answer.status))], [200]);
  assert.equal(polls[0]?.headers.get("ratelimit-policy"), '"polls";q=50;w=3');
});

test("`rate_limit: off` turns it off, at once", async () => {
  await installation.apply(account("off"));
  const caller = await newCaller();
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => caller.post("/credential-sessions", { strategy_id: "strat_notes" })),
  );
  assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201]);
  assert.equal(answers[0]?.headers.get("ratelimit"), null);
});

test("a flood of wrong keys is answered 429 at last, and a good key from the same address is not", async () => {
  const good = await newCaller();
  const wrong = openCaller(service.url, "lk_wrong");
  let refused = 0;
  for (let round = 0; round < 24; round++) {
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => wrong.get("/credential-sessions/sess_x")),
    );
    refused += answers.filter((answer) => answer.status === 429).length;
    if (refused > 0) break;
  }
  assert.ok(refused > 0, "2,400 wrong keys in a row were all looked at");
  assert.equal((await good.post("/credential-sessions", { strategy_id: "strat_notes" })).status, 201);
});

async function sessions(): Promise<number> {
  const rows = await installation.database.db.query<{ count: number }>(
    "select count(*)::int as count from credential_session",
  );
  return rows[0]?.count ?? 0;
}
