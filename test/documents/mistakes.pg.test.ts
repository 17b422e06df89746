// The ordinary mistakes of a first integration: each says what is wrong and where, to the operator. None ends as a run that
// completed with nothing.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freePort } from "../free-port.ts";
import { runCommand } from "../service-process.ts";
import { blueprint, openBench, type Bench } from "./bench.ts";
import { to, type Handler } from "./target.ts";

let bench: Bench;

const LOGIN = `steps:
    - request: { url: /login }
      extract: { csrf: { css: "input[name=csrf]", attr: value } }
    - submit: { form: "form#in", fields: { u: "{{ $credential.user }}", p: "{{ $credential.pass }}" } }
      expect: { status: [302] }
  check: { request: { url: /me } }`;
const form = (id: string, login: string, cache = ""): string => `
strategy: ${id}
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: pass, type: password }]
login:
  type: http
  ${cache}
  ${login}`;
const READ = "request: { url: /items }, records: data.items";
const reading = (key: string, strategy: string, node = READ): string =>
  blueprint(
    key,
    `- { id: read, type: http, credential: it, ${node} }\n- { id: out, type: output, refKey: out, from: read }`,
    `credentials: { it: { strategy: ${strategy} } }`,
  );

before(async () => {
  bench = await openBench([
    form("strat_form", LOGIN),
    form("strat_kept", LOGIN, "cache: 1h"),
    form("strat_selector", LOGIN.replace("form#in", "form#inn")),
    form("strat_extract", LOGIN.replace("input[name=csrf]", "input[name=csfr]")),
    form("strat_control", LOGIN.replace("{ u:", "{ user:")),
    `
strategy: strat_basic
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: pass, type: password }]
login: { type: basic, username: user, password: pass, check: { request: { url: /me } } }`,
    `
strategy: strat_unchecked
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: pass, type: password }]
login: { type: basic, username: user, password: pass }`,
    reading("form", "strat_form"),
    reading("kept", "strat_kept"),
    reading("selector", "strat_selector"),
    reading("extract", "strat_extract"),
    reading("control", "strat_control"),
    reading("basic", "strat_basic"),
    reading("unchecked", "strat_unchecked"),
  ]);
  const on = (route: string, handler: Handler): void => bench.target.on(route, handler);
  on("GET /login", {
    html: `<form id=in method=post action=/session><input type=hidden name=csrf value=t1><input name=u><input name=p type=password></form>`,
  });
  on("POST /session", ({ body }) =>
    new URLSearchParams(body).get("p") === "right"
      ? { ...to("/home"), headers: { location: "/home", "set-cookie": "sid=session-of-the-target; Path=/" } }
      : { html: "Wrong password" },
  );
  on("GET /me", ({ headers }) =>
    headers.cookie?.includes("sid=") === true || headers.authorization === `Basic ${btoa("ana:right")}`
      ? { text: "ana" }
      : { status: 401 },
  );
  on("GET /items", { json: { data: { items: [{ n: 1 }] } } });
});
after(async () => await bench?.[Symbol.asyncDispose]());

async function runAs(key: string, pass = "right", strategy = `strat_${key}`): Promise<string> {
  const id = await bench.connect(strategy, { user: "ana", pass });
  const run = await bench.run(key, { credential_id: id });
  return run.status.status === "completed"
    ? `completed: ${run.results["out"]?.totalRecords}`
    : String(run.detail);
}

test("what is right works", async () => {
  assert.equal(await runAs("form"), "completed: 1");
  assert.equal(await runAs("basic"), "completed: 1");
});

test("a wrong password, form: step, expected, got; at the second time until when it is locked, and how to unlock it", async () => {
  const id = await bench.connect("strat_form", { user: "ana", pass: "wrong" });
  const detail = async () => String((await bench.run("form", { credential_id: id })).detail);
  assert.match(await detail(), /login step 2 \(submit form#in\): expected status 302, got 200/);
  assert.match(await detail(), /2 rejected logins in a row: .*latchkey credentials unlock cred_/);
});

test("a wrong password, basic: the check says so; without one the node does, and names the slot", async () => {
  assert.match(
    await runAs("basic", "wrong"),
    /login check \(GET \/me\): expected status 200 to 299, got 401/,
  );
  bench.target.on("GET /items", { status: 401 });
  assert.match(
    await runAs("unchecked", "wrong"),
    /GET \/items returned 401; expected 200 to 299 \(the target did not accept the credential of the slot "it"\)\./,
  );
  bench.target.on("GET /items", { json: { data: { items: [{ n: 1 }] } } });
});

test("a wrong form selector, extract or control is named, with what the page has", async () => {
  assert.match(await runAs("selector"), /the previous page has no form `form#inn`/);
  assert.match(
    await runAs("extract"),
    /extract csrf found nothing \(css `input\[name=csfr\]`, attr `value`\)/,
  );
  assert.match(await runAs("control"), /the form `form#in` has no control `user`; it has `csrf`, `u`, `p`/);
});

let made = 0;
/** A Blueprint without a credential whose node reads as these keys say. */
async function read(keys: string): Promise<{ detail: string | null; log: string }> {
  const key = `read-${made++}`;
  await bench.apply(
    blueprint(
      key,
      `- { id: read, type: http, request: { url: "{TARGET}/page" }, ${keys} }\n- { id: out, type: output, refKey: out, from: read }`,
      "hosts: ['{TARGET}']",
    ),
  );
  const run = await bench.run(key);
  const [row] = await bench.installation.database.db.query<{ log: Buffer | null }>(
    "select log from run_step where run_id = $1 and node_id = 'read'",
    [run.id],
  );
  return { detail: run.detail, log: row?.log?.toString() ?? "" };
}

test("a wrong row selector, a wrong path, a changed layout and an error in a 200 fail, and say what is there instead", async () => {
  bench.target.on("GET /page", { html: "<title>Sign in</title><table><tr class=row><td>1</table>" });
  const html = (rows: string, column = "td"): string =>
    `parse: { format: html, rows: ${rows}, columns: { n: ${column} } }`;
  assert.match(
    (await read(html("li.gone"))).detail ?? "",
    /no element matches `rows` \(`li\.gone`\).*title is "Sign in"/,
  );
  assert.match((await read("records: data.items")).detail ?? "", /the response \(text\/html\) is not JSON/);
  bench.target.on("GET /page", { json: { errors: [{ message: "no" }], data: null } });
  assert.match(
    (await read("records: data.items")).detail ?? "",
    /no `data\.items`; the answer has the fields `errors`, `data`/,
  );
  bench.target.on("GET /page", { json: { itms: [] } });
  assert.match((await read("records: items")).log, /warning: no `items`; the answer has the fields `itms`/);
});

test("a wrong column is a warning of the step", async () => {
  bench.target.on("GET /page", { html: "<table><tr class=row><td>1<tr class=row><td>2</table>" });
  const { detail, log } = await read(
    "parse: { format: html, rows: tr.row, columns: { n: td, total: td.total } }",
  );
  assert.equal(detail, null);
  assert.match(log, /warning: none of 2 rows has the column `total` \(`td\.total`\)/);
});

test("a bad expression on the data names node, record, field and expression", async () => {
  bench.target.on("GET /page", { json: [{ n: "1" }, { n: "x" }] });
  await bench.apply(
    blueprint(
      "expression",
      `- { id: read, type: http, request: { url: "{TARGET}/page" }, records: $ }
- { id: sums, type: map, from: read, fields: { n: $number(n) } }
- { id: out, type: output, refKey: out, from: sums }`,
      "hosts: ['{TARGET}']",
    ),
  );
  const run = await bench.run("expression");
  assert.match(String(run.detail), /^Node sums: Record 1: fields\.n: expression `\$number\(n\)`:/);
});

test("a target that is down, and a private address, are named with what to do", async () => {
  const port = await freePort();
  const down = (host: string, key: string): string =>
    blueprint(
      key,
      `- { id: read, type: http, retry: { attempts: 1 }, request: { url: "http://${host}/x" }, records: $ }\n- { id: out, type: output, refKey: out, from: read }`,
      `hosts: ["http://${host}"]`,
    );
  await bench.apply(down(`127.0.0.1:${port}`, "down"), down("10.1.2.3", "private"));
  assert.match(String((await bench.run("down")).detail), new RegExp(`127\\.0\\.0\\.1:${port}.*ECONNREFUSED`));
  assert.match(String((await bench.run("private")).detail), /10\.1\.2\.3.*LATCHKEY_EGRESS_ALLOW/);
});

test("a session that the target has dropped is made anew", async () => {
  const id = await bench.connect("strat_kept", { user: "ana", pass: "right" });
  const logins = () => bench.target.seen("POST /session").length;
  const before = logins();
  await bench.run("kept", { credential_id: id });
  await bench.run("kept", { credential_id: id });
  assert.equal(logins(), before + 1);
  let isDropped = true;
  bench.target.on("GET /me", () => {
    const status = isDropped ? 401 : 200;
    isDropped = false;
    return { status };
  });
  assert.equal((await bench.run("kept", { credential_id: id })).status.status, "completed");
  assert.equal(logins(), before + 2);
});

test("a host outside of the strategy, and a misspelled key, are refused by their place", async () => {
  const [outside] = await bench.refusals(
    reading("outside", "strat_form", READ.replace("/items", "https://elsewhere.example/items")),
  );
  assert.match(outside ?? "", /nodes\[0\]\.request\.url .*elsewhere\.example/);
  const [key] = await bench.refusals(reading("key", "strat_form", READ.replace("records", "recrods")));
  assert.match(key ?? "", /unknown key `recrods`; did you mean `records`\?/);
});

test("a deleted credential and a missing input are refused with their field", async () => {
  const id = await bench.connect("strat_form", { user: "ana", pass: "right" });
  await bench.caller.delete(`/credentials/${id}`);
  const gone = await bench.trigger("form", { credential_id: id });
  assert.deepEqual([gone.status, gone.body.error.details[0].field], [422, "credential_id"]);
  await bench.apply(
    blueprint(
      "input",
      `- { id: given, type: input, refKey: words, accepts: json, required: true }
- { id: rows, type: parse, from: given, format: json }
- { id: out, type: output, refKey: out, from: rows }`,
    ),
  );
  const missing = await bench.trigger("input", {});
  assert.deepEqual([missing.status, missing.body.error.details[0].field], [422, "words"]);
});

test("a misspelled setting, command or option is told what is near", async () => {
  const setting = await runCommand(["keys", "list"], {
    ...bench.installation.environment,
    LATCHKEY_PROT: "1",
  });
  assert.match(setting.stderr, /LATCHKEY_PROT.*LATCHKEY_PORT/);
  const command = await runCommand(["rnus", "list"], bench.installation.environment);
  assert.match(command.stderr, /Did you mean runs/);
  const option = await runCommand(["keys", "list", "--acount", "acme"], bench.installation.environment);
  assert.match(option.stderr, /Did you mean --account/);
});

test("a step that suddenly gives nothing stands beside what it usually gives", async () => {
  await bench.apply(
    blueprint(
      "usual",
      `- { id: read, type: http, request: { url: "{TARGET}/usual" }, records: items }
- { id: out, type: output, refKey: out, from: read }
- { id: more, type: http, request: { url: "{TARGET}/more" }, records: items }
- { id: rest, type: output, refKey: rest, from: more }`,
      "hosts: ['{TARGET}']",
    ),
  );
  const give = async (count: number, more: 200 | 404 = 200): Promise<string> => {
    bench.target.on("GET /usual", { json: { items: Array.from({ length: count }, (_, n) => ({ n })) } });
    bench.target.on("GET /more", { status: more, json: { items: [] } });
    const { id, status } = await bench.run("usual");
    assert.equal(status.status, more === 200 ? "completed" : "failed");
    return id;
  };
  const ids = [await give(4), await give(6), await give(5), await give(0)];
  // What a run gave that failed later says nothing of what is usual: with these the median would be 2.
  await give(1, 404);
  await give(2, 404);
  const after = await give(5);
  const shown = async (id: string | undefined) =>
    (await bench.installation.command("runs", "show", id ?? "")).stdout
      .split("\n")
      .find((line) => line.startsWith("read ")) ?? "";
  assert.match(await shown(ids[3]), / 0 \(!\) +5 /);
  assert.match(await shown(ids[2]), / 5 +4 /);
  assert.match(await shown(after), / 5 +4 /);
  const first = await bench.installation.command("runs", "show", ids[0] ?? "", "--json");
  assert.equal(JSON.parse(first.stdout).steps[0].records_usual, null);
});

test("an author's own run shows under a node what it warns of", async () => {
  bench.target.on("GET /renamed", { json: { itms: [] } });
  const file = join(bench.installation.dataFolder, "renamed.yaml");
  const url = `${bench.target.url}/renamed`;
  writeFileSync(
    file,
    blueprint(
      "renamed",
      `- { id: read, type: http, request: { url: "${url}" }, records: items }\n- { id: out, type: output, refKey: out, from: read }`,
      `hosts: ["${bench.target.url}"]`,
    ),
  );
  const { code, stdout, stderr } = await bench.installation.command("run", file);
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^read \(http\) 0 records .*\n {2}warning: no `items`; the answer has the fields `itms`$/m,
  );
});
