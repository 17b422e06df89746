// A loop carries its steps for each record, one after the other, and its journal has each step of each turn: wherever a worker dies, nothing
// that was done is asked again, and no write is sent twice. What the target has seen decides.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { getRun } from "#actions/operators/list-runs.ts";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { untilDead } from "../processes.ts";
import { openCaller, type Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type RunningService } from "../service.ts";
import { inTier, testInAll } from "../tiers.ts";

const RECORDS = 3;
const PATIENCE_MS = 60_000;

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let key: string;
let service: RunningService | null = null;
let caller: Caller;
/** What the target was told since the test began: `open n0`, `send n0`, … */
let told: string[] = [];
/** The tokens of its books. */
let sent: string[] = [];
/** Of a write, what the target does instead of answering it. */
let broken: ReadonlySet<string> = new Set();
/** Answers of `GET /job` before the one that will do. */
let pending = 0;

const ITEMS = `- { id: items, type: http, request: { url: "{TARGET}/items" }, records: items }
- { id: made, type: map, from: items, fields: { number: number, at: $millis() } }`;
const OPEN = `- { id: open, type: http, request: { url: "{TARGET}/open", query: { number: "{{ number }}" } }, records: $ }`;
const SEND = (more: string): string => `- id: send
  type: http
  request: { method: POST, url: "{TARGET}/orders", json: { number: "{{ number }}", at: "{{ at }}", total: "{{ $steps.open.total }}", token: "{{ $token }}" } }
  records: $
  ${more}`;
const VERIFY = `verify: { request: { url: "{TARGET}/orders", query: { token: "{{ $token }}" } }, when: "$count(found) > 0" }`;
const CONFIRM = `- { id: confirm, type: http, request: { url: "{TARGET}/confirm", query: { number: "{{ $record.number }}", order: "{{ $steps.send.order }}" } }, records: "[{ 'order': order, 'of': $record.number, 'at': $index }]" }`;

const indented = (text: string): string => text.replaceAll(/^/gm, "    ");
const loop = (steps: readonly string[], more = ""): string =>
  `${ITEMS}\n- id: each\n  type: loop\n  for_each: made\n${more === "" ? "" : `  ${more}\n`}  steps:\n${steps.map(indented).join("\n")}\n- { id: out, type: output, refKey: out, from: each }`;

const DOCUMENTS: Readonly<Record<string, string>> = {
  sends: loop(
    [OPEN, SEND(VERIFY), CONFIRM],
    `gives: "{ 'number': number, 'total': $steps.open.total, 'confirm': $steps.confirm }"`,
  ),
  asks: loop([OPEN, SEND("on_unknown: review"), CONFIRM]),
  beside: loop([OPEN, SEND(VERIFY), CONFIRM], "concurrency: 3"),
  polls: loop([
    OPEN,
    `- { id: job, type: http, when: number = 'n1', request: { url: "{TARGET}/job" }, until: { when: "state = 'done'", every: 40s, for: 1h } }`,
    CONFIRM.replace("$steps.send.order", "$steps.open.total"),
  ]),
  files: loop([
    `- { id: pdf, type: http, request: { url: "{TARGET}/pdf", query: { number: "{{ number }}" } }, save: file }`,
    `- { id: up, type: http, request: { method: POST, url: "{TARGET}/up", file: pdf } }`,
  ]),
};

before(async () => {
  target = await openTarget();
  installation = await install();
  const documents = Object.entries(DOCUMENTS).map(([id, nodes]) =>
    blueprint(id, nodes, "hosts: ['{TARGET}']").replaceAll("{TARGET}", target.url),
  );
  await installation.apply("account: acme\nname: Acme", ...documents);
  key = await installation.createKey("acme");
  const numberOf = (query: URLSearchParams): string => query.get("number") ?? "";
  target.on("GET /items", {
    json: { items: Array.from({ length: RECORDS }, (_none, index) => ({ number: `n${index}` })) },
  });
  target.on("GET /open", ({ query }) => {
    told.push(`open ${numberOf(query)}`);
    return { json: { total: 10 + Number(numberOf(query).slice(1)) } };
  });
  target.on("POST /orders", ({ body }) => {
    const order = JSON.parse(body);
    told.push(`send ${order.number} ${order.total}`);
    sent.push(order.token);
    return broken.has(order.number) ? { drop: true } : { json: { order: `o-${order.number}` } };
  });
  target.on("GET /orders", ({ query }) => ({
    json: { found: sent.filter((token) => token === query.get("token")) },
  }));
  target.on("GET /confirm", ({ query }) => {
    told.push(`confirm ${numberOf(query)} ${query.get("order")}`);
    return { json: { order: query.get("order") } };
  });
  target.on("GET /job", () => {
    told.push("job");
    return { json: { state: pending-- > 0 ? "queued" : "done" } };
  });
  target.on("GET /pdf", ({ query }) => ({ bytes: Buffer.from(`%PDF ${numberOf(query)} `.repeat(2_000)) }));
  target.on("POST /up", ({ bytes, headers }) => {
    told.push(`up ${bytes.length} ${bytes.subarray(0, 7).toString()} ${headers["content-type"]}`);
    return { text: "thanks" };
  });
});
beforeEach(() => {
  [told, sent, broken, pending] = [[], [], new Set(), 0];
});
afterEach(async () => await assertInvariants(installation));
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

/** The service of the test's own process. */
async function serve(): Promise<void> {
  service ??= await installation.serve();
  caller = openCaller(service.url, key);
}

async function stop(): Promise<void> {
  await service?.end();
  service = null;
}

async function trigger(id: string): Promise<string> {
  const { status, text, body } = await caller.post(`/blueprints/${id}/trigger`, {});
  assert.equal(status, 202, text);
  return body.id;
}

const endOf = async (id: string): Promise<string> => (await caller.waitForRun(id, PATIENCE_MS)).body.status;

async function dataOf(id: string): Promise<readonly any[]> {
  const { body } = await caller.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`);
  return body.results.out.records.map(({ data }: any) => data);
}

const each = (make: (number: string, index: number) => readonly string[]): readonly string[] =>
  Array.from({ length: RECORDS }, (_none, index) => make(`n${index}`, index)).flat();
const WHOLE = each((number, index) => [
  `open ${number}`,
  `send ${number} ${10 + index}`,
  `confirm ${number} o-${number}`,
]);

test("turns come one after the other, each step sees what those before it gave, and `gives` makes the records", async () => {
  await serve();
  const run = await trigger("sends");
  assert.equal(await endOf(run), "completed");
  assert.deepEqual(told, WHOLE);
  assert.deepEqual(
    await dataOf(run),
    each((number) => [number]).map((number, index) => ({
      number,
      total: 10 + index,
      confirm: [{ order: `o-${number}`, of: number, at: index }],
    })),
  );
  const { steps } = await getRun(installation.database.db, run, true);
  const loopStep = steps.find(({ node }) => node === "each");
  assert.deepEqual([loopStep?.turns_begun, loopStep?.turns_total], [RECORDS, RECORDS]);
  assert.equal(new Set(sent).size, RECORDS, "a token for each record");
});

test("without `gives` the records go on as they are; turns beside each other keep their order", async () => {
  await serve();
  const run = await trigger("beside");
  assert.equal(await endOf(run), "completed");
  assert.deepEqual(told.toSorted(), WHOLE.toSorted());
  assert.deepEqual(
    (await dataOf(run)).map(({ number }) => number),
    each((number) => [number]),
  );
});

test("a file that a step downloaded is sent by a later one", async () => {
  await serve();
  assert.equal(await endOf(await trigger("files")), "completed");
  assert.deepEqual(
    told,
    each((number) => [`up 16000 %PDF ${number.slice(0, 2)} application/octet-stream`]),
  );
});

test("a step that fails fails the run with its name and its record, and the target's other writes stay", async () => {
  await serve();
  target.on("GET /confirm", ({ query }) =>
    query.get("number") === "n1" ? { status: 404 } : { json: { order: 1 } },
  );
  const run = await trigger("sends");
  assert.equal(await endOf(run), "failed");
  const [row] = await installation.database.db.query<{ detail: string }>(
    "select error_detail as detail from run where id = $1",
    [run],
  );
  assert.match(
    row?.detail ?? "",
    /^Node each: step confirm, record 1: GET .*\/confirm returned 404; expected 200 to 299\.$/,
  );
  assert.deepEqual(
    told,
    WHOLE.slice(0, 5).filter((each) => !each.startsWith("confirm")),
  );
  target.on("GET /confirm", ({ query }) => {
    told.push(`confirm ${query.get("number")} ${query.get("order")}`);
    return { json: { order: query.get("order") } };
  });
});

test("a write in doubt waits for the operator by its step and its record; nothing before it is asked again", async () => {
  await serve();
  broken = new Set(["n1"]);
  const run = await trigger("asks");
  await eventually(
    "it waits for the operator",
    async () => {
      const { body } = await caller.get(`/blueprint-runs/${run}/status`);
      return body.progress_step === "awaiting_review" || undefined;
    },
    PATIENCE_MS,
  );
  assert.deepEqual(told, WHOLE.slice(0, 5));
  const { code, stderr } = await installation.command(
    "reviews",
    "write",
    run,
    "each.send",
    "1",
    "--happened",
  );
  assert.equal(code, 0, stderr);
  assert.equal(await endOf(run), "completed");
  // Its answer is lost: the order is not known.
  assert.deepEqual(
    told,
    WHOLE.map((each) => (each === "confirm n1 o-n1" ? "confirm n1 null" : each)),
  );
});

test("a step that polls hands the run back between its asks, and the turns before it are not asked again", async () => {
  await serve();
  pending = 1;
  const run = await trigger("polls");
  const waits = async (): Promise<true | undefined> => {
    const rows = await installation.database.db.query(
      `select 1 from run join run_poll on run_poll.run_id = run.id
       where run.id = $1 and line = 'clock' and lease_owner is null and node_id = 'each.job' and ordinal = 1 and wakes_at is not null`,
      [run],
    );
    return rows.length > 0 || undefined;
  };
  await eventually("it waits", waits, PATIENCE_MS);
  const { stdout } = await installation.command("runs", "show", run);
  assert.match(stdout, /^next poll +2\d{3}-/m);
  assert.match(stdout, /^each +Running .* at 2 of 3$/m);
  const seen = ["open n0", "confirm n0 10", "open n1", "job"];
  assert.deepEqual(told, seen);
  await stop();
  await serve();
  await moveClock(installation.database.db, "41 seconds");
  assert.equal(await endOf(run), "completed");
  assert.deepEqual(told, [...seen, "job", "confirm n1 11", "open n2", "confirm n2 12"]);
});

/** How often each point is passed in a run of `sends`; the loop's own step is the third of the journal. */
const POINTS = [
  ["turn.before_keep", 9],
  ["turn.after_keep", 9],
  ["write.before_intent", 3],
  ["write.after_intent", 3],
  ["write.after_effect", 3],
  ["write.after_outcome", 3],
  ["step.after_source", 1],
  ["step.before_finish", 2],
  ["step.after_finish", 2],
] as const;
const KILLS = POINTS.flatMap(([point, hits]) =>
  Array.from({ length: hits }, (_none, index) => [point, index + 1] as const),
);
/** Between two turns' writes: the journal has one turn, and of the second all but its last step. */
const isRepresentative = ([point, hit]: (typeof KILLS)[number]): boolean =>
  point === "turn.after_keep" && hit === 5;

for (const [point, hit] of inTier(KILLS, isRepresentative)) {
  test(`killed at ${point} (${hit}), each write is sent once, and nothing that was kept is asked again`, async () => {
    await stop();
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill:${hit}` });
    caller = openCaller(dying.url, key);
    const run = await trigger("sends");
    await untilDead(dying);
    const before = [...told];
    await serve();
    assert.equal(await endOf(run), "completed");
    const again = told.length - WHOLE.length;
    // A read whose answer was not kept yet is asked once more, and nothing else.
    assert.ok(again <= 1, `${told.join(", ")}; before it died: ${before.join(", ")}`);
    // Of a write that was looked up the answer is lost.
    const lost = point === "write.after_effect" ? `confirm n${hit - 1} o-n${hit - 1}` : null;
    assert.deepEqual(
      [...new Set(told)],
      WHOLE.map((each) => (each === lost ? `confirm n${hit - 1} null` : each)),
    );
    if (again === 1)
      assert.ok(point === "turn.before_keep" && !before.at(-1)?.startsWith("send"), told.join());
    assert.equal(new Set(sent).size, RECORDS);
    assert.equal(sent.length, RECORDS);
    assert.equal((await dataOf(run)).length, RECORDS);
  });
}

testInAll(
  "a run that loses its worker once (killed at …)",
  "a worker that dies after each step of a turn ends no run as poison: what is kept is progress",
  {},
  async () => {
    await stop();
    let run = "";
    for (let life = 0; life < 4; life++) {
      const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: "turn.after_keep=kill" });
      caller = openCaller(dying.url, key);
      if (run === "") run = await trigger("sends");
      await untilDead(dying);
      assert.deepEqual(told, WHOLE.slice(0, life + 1));
    }
    await serve();
    assert.equal(await endOf(run), "completed");
    assert.deepEqual(told, WHOLE);
  },
);
