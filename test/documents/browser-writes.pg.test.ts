// docs/browser.md#writes: a write by steps is journaled like one by a request: never done twice blindly, and doubt goes to a person.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { openProgram } from "../browser/program.ts";
import { assertInvariants } from "../invariants.ts";
import { eventually } from "../eventually.ts";
import { dataOf, openBench, type Bench } from "./bench.ts";

/** The form draws what the answer says; the list has what was stored. */
const FORM = `<!doctype html><h1>Order</h1><label>Number <input id=number></label><button>Send</button><p id=note></p><script>
  document.querySelector("button").onclick = async () => {
    const answer = await fetch("/orders", { method: "POST", body: document.querySelector("#number").value });
    document.querySelector("#note").textContent = answer.ok ? "Thank you" : answer.status === 422 ? "Not accepted" : "…";
  };
</script>`;
const LIST = `<!doctype html><h1>Orders</h1><main></main><script>
  void fetch("/stored").then(async (answer) => {
    const { stored } = await answer.json();
    document.querySelector("main").innerHTML = stored.length === 0 ? "No orders" : "<ul>" + stored.map((each) => "<li>" + each) + "</ul>";
  });
</script>`;

const LOOK_UP = `
    verify:
      steps: [{ goto: "{TARGET}/list" }]
      found: { visible: { role: listitem, has_text: "{{ $inputs.number }}" } }
      missing: { visible: { text: No orders } }`;

/** A look-up that fails by itself. */
const BROKEN_LOOK_UP = LOOK_UP.replace(
  '"{TARGET}/list" }]',
  '"{TARGET}/list" }, { click: { role: button, name: None }, timeout: 300ms }]',
);

const writing = (name: string, more = "") => `blueprint: ${name}
account: acme
hosts: ["{TARGET}"]
nodes:
  - { id: number, type: input, refKey: number }
  - id: sent
    type: browser
    effect: write
    retry: { attempts: 2, initial: 1ms }${more}
    steps:
      - goto: "{TARGET}/form"
      - fill: { label: Number, with: "{{ $inputs.number }}" }
      - commit: true
      - click: { role: button, name: Send }
      - expect: { visible: { text: Thank you }, rejected: { text: Not accepted } }
        timeout: 2s
      - extract: { fields: { note: "#note" } }
  - { id: out, type: output, refKey: out, from: sent }
`;

let program: Awaited<ReturnType<typeof openProgram>>;
let bench: Bench;
let stored: string[] = [];
let answer: 200 | 422 | 500 = 200;
let keeps = true;
let formFails = 0;

before(async () => {
  program = await openProgram();
  bench = await openBench(
    [
      writing("asks"),
      writing("looks", LOOK_UP),
      writing("gives-up", "\n    on_unknown: fail"),
      ...["off", "on_failure"].map((evidence) =>
        writing(
          `keeps-${evidence.replace("_", "-")}`,
          `\n    evidence: ${evidence}\n    on_unknown: fail${BROKEN_LOOK_UP}`,
        ),
      ),
    ],
    undefined,
    { LATCHKEY_BROWSER: program.path },
  );
  bench.target.on("GET /form", () => (formFails-- > 0 ? { status: 503, html: "" } : { html: FORM }));
  bench.target.on("GET /list", { html: LIST });
  bench.target.on("GET /stored", () => ({ json: { stored } }));
  bench.target.on("POST /orders", ({ body }) => {
    if (keeps) stored.push(body);
    return { status: answer, json: {} };
  });
});
beforeEach(() => {
  stored = [];
  answer = 200;
  keeps = true;
  formFails = 0;
});
after(async () => {
  if (bench !== undefined) await assertInvariants(bench.installation);
  await bench?.[Symbol.asyncDispose]();
  program?.remove();
});

const writesOf = async (runId: string) =>
  await bench.installation.database.db.query<{ status: string; attempts: number }>(
    "select status, attempts from run_write where run_id = $1",
    [runId],
  );

async function awaitsDecision(blueprint: string, number: string): Promise<string> {
  const { body } = await bench.trigger(blueprint, { number });
  await eventually("it waits for the operator", async () => {
    const [run] = await bench.installation.database.db.query<{ step: string }>(
      "select progress_step as step from run where id = $1",
      [body.id],
    );
    return run?.step === "awaiting_review" ? true : undefined;
  });
  return body.id;
}

test("a write is done once, after its intent; what fails before the commit is done again", async () => {
  formFails = 1;
  const run = await bench.run("asks", { number: "n1" });
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.deepEqual(dataOf(run), [{ note: "Thank you" }]);
  assert.deepEqual(stored, ["n1"]);
  assert.deepEqual(await writesOf(run.id), [{ status: "done", attempts: 1 }]);
});

test("a write that the page refuses has not happened: the node fails, and nobody is asked", async () => {
  [answer, keeps] = [422, false];
  const run = await bench.run("asks", { number: "n2" });
  assert.equal(run.kind, "target");
  assert.match(
    run.detail ?? "",
    /^Node sent: steps\[4\] \(expect text "Thank you" visible\): the target rejected the write/,
  );
  assert.deepEqual(await writesOf(run.id), [{ status: "refused", attempts: 1 }]);
});

test("after the commit a failure is doubt: a person decides, sees the page, and it is not done again", async () => {
  answer = 500;
  const id = await awaitsDecision("asks", "n3");
  assert.deepEqual(await writesOf(id), [{ status: "in_doubt", attempts: 1 }]);
  const told = await bench.installation.command("runs", "show", id, "--json");
  const { steps } = JSON.parse(told.stdout) as {
    readonly steps: readonly { readonly evidence: readonly { step: string }[] }[];
  };
  assert.deepEqual(
    steps[0]?.evidence.map(({ step }) => step),
    ['steps[4] (expect text "Thank you" visible)'],
  );
  const decided = await bench.installation.command("reviews", "write", id, "sent", "0", "--happened");
  assert.equal(decided.code, 0, decided.stderr);
  const run = await bench.ended(id);
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.deepEqual(dataOf(run), []);
  assert.deepEqual(stored, ["n3"]);
  const failed = await bench.run("gives-up", { number: "n4" });
  assert.match(failed.detail ?? "", /may have happened.*`on_unknown: fail`/);
  assert.deepEqual(stored, ["n3", "n4"]);
});

test("a look-up by pages decides: what is found is not done again, what is missing is", async () => {
  answer = 500;
  const found = await bench.run("looks", { number: "n5" });
  assert.equal(found.status.status, "completed", found.detail ?? "");
  assert.deepEqual(stored, ["n5"]);
  [stored, keeps] = [[], false];
  const missing = await bench.run("looks", { number: "n6" });
  assert.equal(missing.status.status, "failed");
  assert.match(missing.detail ?? "", /a look-up did not find the write/);
  assert.deepEqual(await writesOf(missing.id), [{ status: "ruled_out", attempts: 2 }]);
});

test("of a look-up that fails nothing is kept where `evidence` is off", async () => {
  answer = 500;
  const kept: unknown[] = [];
  for (const name of ["keeps-off", "keeps-on-failure"]) {
    const { id } = await bench.run(name, { number: name });
    const told = await bench.installation.command("runs", "show", id, "--json");
    kept.push(JSON.parse(told.stdout).steps[0].evidence.map(({ step }: { step: string }) => step));
  }
  assert.deepEqual(kept, [
    [],
    ['steps[4] (expect text "Thank you" visible)', 'verify.steps[1] (click button "None")'],
  ]);
});
