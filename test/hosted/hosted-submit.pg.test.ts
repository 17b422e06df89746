/** What a submit keeps, once and to the byte, and where it sends the end user. Real HTTP, real runs at a real target. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load } from "cheerio";
import { TOTP } from "otpauth";
import { openForm, send, submit } from "./form-visitor.ts";
import { GOOD, listen, RETURN_ORIGIN, setUpHosted, type Hosted } from "./hosted-setup.ts";

const MANY = 50;
const FIELD_BYTES_MAX = 16_384;
const BODY_BYTES_MAX = 65_536;

/** What the target was sent, newest last. */
const seen: { readonly authorization: string; readonly code: string }[] = [];
let target: Awaited<ReturnType<typeof listen>>;
let hosted: Hosted;

before(async () => {
  // A password of 16 KiB makes a header of 22 KiB.
  target = await listen(
    (request, response) => {
      seen.push({
        authorization: request.headers.authorization ?? "",
        code: String(request.headers["x-code"] ?? ""),
      });
      response.setHeader("content-type", "application/json").end('{"items":[{"ok":true}]}');
    },
    { maxHeaderSize: 131_072 },
  );
  hosted = await setUpHosted(...documents(target.origin));
});
after(async () => {
  target.close();
  await hosted[Symbol.asyncDispose]();
});

function documents(origin: string): string[] {
  const strategy = (id: string, fields: readonly unknown[], login: unknown): string =>
    JSON.stringify({ strategy: id, account: "acme", name: id, hosts: [origin], fields, login });
  const blueprint = (key: string, strategyId: string): string =>
    JSON.stringify({
      blueprint: key,
      account: "acme",
      name: key,
      credentials: { target: { strategy: strategyId } },
      nodes: [
        {
          id: "asked",
          type: "http",
          credential: "target",
          request: { method: "GET", url: "/" },
          records: "items",
        },
        { id: "out", type: "output", refKey: "out", from: "asked" },
      ],
    });
  const username = { key: "username", type: "text" };
  return [
    strategy("strat_basic", [username, { key: "password", type: "password" }], {
      type: "basic",
      username: "username",
      password: "password",
    }),
    blueprint("ask-basic", "strat_basic"),
    strategy("strat_totp", [{ key: "totp", type: "totp_secret" }], {
      type: "headers",
      headers: { "X-Code": "{{ $credential.totp.code }}" },
    }),
    blueprint("ask-totp", "strat_totp"),
    strategy(
      "strat_many",
      Array.from({ length: MANY }, (_, index) => ({ key: `field_${index}`, type: "text" })),
      { type: "none" },
    ),
  ];
}

/** Submits the form of a new session of a strategy, runs a Blueprint with the credential, gives what the target was sent. */
async function runWith(strategyId: string, blueprintKey: string, values: Readonly<Record<string, string>>) {
  const session = await hosted.session({ strategy_id: strategyId });
  const answer = await submit(session.hosted_url, values);
  assert.equal(answer.status, 200, answer.text);
  const { credential_id } = await hosted.read(session.id);
  const run = await hosted.acme.post(`/blueprints/${blueprintKey}/trigger`, { credential_id });
  assert.equal(run.status, 202, run.text);
  const { body } = await hosted.acme.waitForRun(run.body.id);
  assert.equal(body.status, "completed");
  const last = seen.at(-1);
  assert.ok(last);
  return last;
}

const SECRETS: readonly (readonly [string, string])[] = [
  ["spaces around it", "  two before, three after   "],
  ["only spaces", "   "],
  ["NUL and control characters", "a\u0000b\u0001c\u007fd\te"],
  ["line ends of every kind", "one\ntwo\r\nthree\rfour"],
  ["emoji, a joined family and a flag", "🔑 👩‍👩‍👧‍👦 🇩🇪"],
  ["both normal forms and a byte order mark", "\ufeffe\u0301 \u00e9"],
  ["form syntax", "a=b&c=d+e%20f%2B;g?#\"'<>`${x}{{ y }}"],
  ["16 KiB of four-byte characters", "🔐".repeat(FIELD_BYTES_MAX / 4)],
];

for (const [what, password] of SECRETS) {
  test(`a password survives to the byte: ${what}`, async () => {
    const { authorization } = await runWith("strat_basic", "ask-basic", { username: "ada", password });
    const sent = Buffer.from(authorization.replace(/^Basic /, ""), "base64");
    assert.ok(sent.equals(Buffer.from(`ada:${password}`, "utf8")), "the target was sent other bytes");
  });
}

test("one byte over 16 KiB is too long for a field, and nothing of it is shown", async () => {
  const session = await hosted.session({ strategy_id: "strat_basic" });
  const answer = await submit(session.hosted_url, {
    username: "ada",
    password: "q".repeat(FIELD_BYTES_MAX + 1),
  });
  assert.equal(answer.status, 422);
  assert.match(answer.text, /too long/);
  assert.ok(!answer.text.includes("qqqq"));
  assert.equal(await hosted.credentialsOf(session.id), 0);
});

const BASE32 = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const TOTP_TEXTS = [
  { what: "in groups and lower case", text: " jbsw y3dp ehpk 3pxp  jbsw-y3dp-ehpk-3pxp ", options: {} },
  {
    what: "as an otpauth:// link with algorithm, digits and period",
    text: `otpauth://totp/Northwind:ada%40acme.example?secret=${BASE32}&issuer=Northwind&algorithm=SHA256&digits=8&period=60`,
    options: { algorithm: "SHA256", digits: 8, period: 60 },
  },
];
for (const { what, text, options } of TOTP_TEXTS) {
  test(`a TOTP secret given ${what} makes the codes of the user's own app`, async () => {
    const { code } = await runWith("strat_totp", "ask-totp", { totp: text });
    assert.equal(code.length, options.digits ?? 6);
    const delta = new TOTP({ secret: BASE32, ...options }).validate({ token: code, window: 1 });
    assert.notEqual(delta, null, `the target was sent ${code}`);
  });
}

test("of 20 submits at once exactly one makes a credential, and all are sent the same way", async () => {
  const session = await hosted.session({ return_url: `${RETURN_ORIGIN}/back?state=7` });
  const { csrf } = await openForm(session.hosted_url);
  const submits = Array.from({ length: 20 }, async (_, index) => {
    return await submit(session.hosted_url, { ...GOOD, email: `ada+${index}@acme.example` }, { csrf });
  });
  for (const answer of await Promise.all(submits)) {
    assert.equal(answer.status, 303, answer.text);
    assert.equal(answer.headers.location, `${RETURN_ORIGIN}/back?state=7&session_id=${session.id}`);
  }
  assert.equal(await hosted.credentialsOf(session.id), 1);
  const { status, credential_id } = await hosted.read(session.id);
  assert.equal(status, "completed");
  assert.match(String(credential_id), /^cred_/);
});

test("of 20 submits at once without a return_url all see the success page", async () => {
  const session = await hosted.session();
  const { csrf } = await openForm(session.hosted_url);
  const submits = Array.from({ length: 20 }, async () => await submit(session.hosted_url, GOOD, { csrf }));
  for (const answer of await Promise.all(submits)) {
    assert.equal(answer.status, 200);
    assert.match(answer.text, /Your login is saved/);
  }
  assert.equal(await hosted.credentialsOf(session.id), 1);
});

test("a submit again, from another tab and with other values, is sent the same way and changes nothing", async () => {
  const session = await hosted.session({ return_url: `${RETURN_ORIGIN}/back` });
  const [first, second] = [await openForm(session.hosted_url), await openForm(session.hosted_url)];
  const once = await submit(session.hosted_url, GOOD, { csrf: first.csrf });
  const before = await hosted.read(session.id);
  for (const csrf of [first.csrf, second.csrf]) {
    for (const values of [GOOD, { ...GOOD, password: "something else" }, {}]) {
      const again = await submit(session.hosted_url, values, { csrf });
      assert.equal(again.status, 303);
      assert.equal(again.headers.location, once.headers.location);
    }
  }
  assert.deepEqual(await hosted.read(session.id), before);
  assert.equal(await hosted.credentialsOf(session.id), 1);
});

test("a submit one millisecond before expires_at is kept; one at that instant is not", async () => {
  const [inTime, late, after] = [await hosted.session(), await hosted.session(), await hosted.session()];
  // `interval`: the CSRF value must be younger than twelve hours at the submit.
  const at = async (session: { readonly expires_at: string }, offset: string): Promise<void> =>
    await hosted.setClock(`timestamptz '${session.expires_at}' + interval '${offset}'`);
  try {
    await at(inTime, "-1 second");
    const form = await openForm(inTime.hosted_url);
    await at(inTime, "-1 millisecond");
    assert.equal((await hosted.read(inTime.id)).status, "pending");
    assert.equal((await submit(inTime.hosted_url, GOOD, { csrf: form.csrf })).status, 200);
    assert.equal((await hosted.read(inTime.id)).status, "completed");

    for (const [session, offset] of [
      [late, "0"],
      [after, "1 hour"],
    ] as const) {
      await at(session, "-1 second");
      const { csrf } = await openForm(session.hosted_url);
      await at(session, offset);
      const answer = await submit(session.hosted_url, GOOD, { csrf });
      assert.equal(answer.status, 410);
      assert.match(answer.text, /This link has expired/);
      const { status, hosted_url, credential_id } = await hosted.read(session.id);
      assert.deepEqual(
        { status, hosted_url, credential_id },
        { status: "expired", hosted_url: null, credential_id: null },
      );
      assert.equal(await hosted.credentialsOf(session.id), 0);
    }
  } finally {
    await hosted.setClock();
  }
});

test("a form of exactly 64 KiB is read, one byte more is not, whether its length is announced or not", async () => {
  const session = await hosted.session();
  const { csrf } = await openForm(session.hosted_url);
  const body = (bytes: number): string => `_csrf=${csrf}&x=`.padEnd(bytes, "x");
  const post = async (bytes: number, more: Record<string, string> = {}) =>
    await send(session.hosted_url, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...more },
      body: body(bytes),
    });
  assert.equal((await post(BODY_BYTES_MAX)).status, 422);
  for (const bytes of [BODY_BYTES_MAX + 1, 3_000_000]) {
    for (const headers of [{}, { "transfer-encoding": "chunked" }]) {
      const answer = await post(bytes, headers);
      assert.equal(answer.status, 413);
      assert.match(answer.text, /too much to send/);
      assert.match(answer.text, /What you entered is larger/);
      assert.equal(answer.headers["content-type"], "text/html; charset=utf-8");
    }
  }
  const named = await submit(session.hosted_url, { ...GOOD, email: "x".repeat(BODY_BYTES_MAX) }, { csrf });
  assert.equal(named.status, 413);
  assert.match(load(named.text)("main").text(), /“Email address” is larger than this form can take/);
  assert.equal((await hosted.read(session.id)).status, "pending");
});

test("a strategy with 50 fields can be filled in; a 51st name is too much", async () => {
  const session = await hosted.session({ strategy_id: "strat_many" });
  const { page, csrf } = await openForm(session.hosted_url);
  const controls = load(page)("form input:not([type=hidden])").toArray();
  const fields = controls.map((control) => [control.attribs["name"] ?? "", "x"] as const);
  assert.equal(fields.length, MANY);
  const tooMany = await submit(session.hosted_url, [...fields, ["one_more", "x"]], { csrf });
  assert.equal(tooMany.status, 413);
  assert.match(tooMany.text, /too much to send/);
  assert.equal((await submit(session.hosted_url, fields, { csrf })).status, 200);
  assert.equal(await hosted.credentialsOf(session.id), 1);
});

test("names that are no field are ignored, and of a repeated name the first value counts", async () => {
  const session = await hosted.session({ strategy_id: "strat_basic" });
  const values = [
    ["session_id", "sess_x"],
    ["__proto__", "x"],
    ["_method", "DELETE"],
    ["username", "first"],
    ["username", "second"],
    ["password", "one"],
    ["password[]", "two"],
  ] as const;
  assert.equal((await submit(session.hosted_url, values)).status, 200);
  const { credential_id } = await hosted.read(session.id);
  const run = await hosted.acme.post("/blueprints/ask-basic/trigger", { credential_id });
  assert.equal((await hosted.acme.waitForRun(run.body.id)).body.status, "completed");
  assert.equal(seen.at(-1)?.authorization, `Basic ${Buffer.from("first:one").toString("base64")}`);
});

test("UTF-8 that a client did not percent-encode is read as UTF-8", async () => {
  const session = await hosted.session({ strategy_id: "strat_basic" });
  const { csrf } = await openForm(session.hosted_url);
  const headers = { "content-type": "application/x-www-form-urlencoded; charset=UTF-8" };
  const body = `_csrf=${csrf}&username=zoë&password=påss🔑`;
  assert.equal((await send(session.hosted_url, { method: "POST", headers, body })).status, 200);
  const { credential_id } = await hosted.read(session.id);
  const run = await hosted.acme.post("/blueprints/ask-basic/trigger", { credential_id });
  assert.equal((await hosted.acme.waitForRun(run.body.id)).body.status, "completed");
  assert.equal(seen.at(-1)?.authorization, `Basic ${Buffer.from("zoë:påss🔑").toString("base64")}`);
});

const RETURN_URLS = [
  { given: "/back", wanted: "/back?session_id=$" },
  { given: "", wanted: "/?session_id=$" },
  { given: "/back?", wanted: "/back?session_id=$" },
  { given: "/back?a=1&b=%20x+y&a=2", wanted: "/back?a=1&b=%20x+y&a=2&session_id=$" },
  { given: "/back?session_id=sess_stolen&a=1", wanted: "/back?a=1&session_id=$" },
  { given: "/back?a=1&session%5Fid=x&session_id=y", wanted: "/back?a=1&session_id=$" },
  { given: "/back?a=1#part/2?x=3", wanted: "/back?a=1&session_id=$#part/2?x=3" },
  { given: "/%0d%0aSet-Cookie:x?y=%0d%0aX:1", wanted: "/%0d%0aSet-Cookie:x?y=%0d%0aX:1&session_id=$" },
];
for (const { given, wanted } of RETURN_URLS) {
  test(`return_url "${given}" leads to "${wanted}"`, async () => {
    const return_url = RETURN_ORIGIN + given;
    const session = await hosted.session({ return_url });
    assert.equal((await hosted.acme.get(`/credential-sessions/${session.id}`)).body.return_url, return_url);
    const { status, headers, text } = await submit(session.hosted_url, GOOD);
    assert.equal(status, 303);
    assert.equal(headers.location, RETURN_ORIGIN + wanted.replace("$", session.id));
    assert.equal(headers["set-cookie"], undefined);
    assert.equal(text, "");
  });
}

test("none of the submitted secrets is in the database or in the log", async () => {
  const canary = "canary-4be1c09d77";
  const session = await hosted.session({ return_url: `${RETURN_ORIGIN}/back` });
  assert.equal((await submit(session.hosted_url, { email: "a@b.example", password: canary })).status, 303);
  const rows = await hosted.installation.database.db.query<{ row: string }>(
    "select credential::text || encode(credential.sealed, 'escape') as row from credential where session_id = $1",
    [session.id],
  );
  assert.equal(rows.length, 1);
  assert.ok(!String(rows[0]?.row).includes(canary));
  assert.ok(!hosted.installation.logs().includes(canary));
});
