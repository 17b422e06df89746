import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openCaller } from "../caller.ts";
import { complete, connect, foreign, readResults, sharedLedger, trigger, waitForRun } from "../flows.ts";
import { assertProblem, RUN_ID, UUID } from "../shapes.ts";
import { deployment, first, limited, prove, section } from "../suite.ts";

const ECHO = "/blueprints/conformance-echo/trigger";
const LEDGER = "/blueprints/conformance-ledger/trigger";

/** What the echo Blueprint was given: the fields that its target saw. */
async function echoOf(body: unknown): Promise<unknown> {
  return (await readResults(await complete("conformance-echo", body))).at("results.echo.records.0.data");
}

function formOf(values: Readonly<Record<string, string | Blob>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === "string") form.set(name, value);
    else form.set(name, value, "rows.csv");
  }
  return form;
}

const CSV = "name,count\nfirst,1\nsecond,2\n";
const csvFile = () => new Blob([CSV], { type: "text/csv" });
const CSV_ROWS = [
  { name: "first", count: "1" },
  { name: "second", count: "2" },
];

async function rowsOf(run: string): Promise<unknown> {
  const records = (await readResults(run)).at("results.rows.records") as { data: unknown }[];
  return records.map(({ data }) => data);
}

section("POST /blueprints/{blueprintKey}/trigger", [
  prove(
    "Spec, POST /blueprints/{blueprintKey}/trigger: \"Response 202 body: {id: string (run_...), run_key: string (UUID), status: string ('queued')}\"",
    "the answer of a trigger has three fields, and the status queued",
    async () => {
      const answer = await first().post("/blueprints/conformance-open/trigger", {});
      assert.equal(answer.status, 202);
      assert.deepEqual(Object.keys(answer.object()), ["id", "run_key", "status"]);
      assert.match(answer.string("id"), RUN_ID);
      assert.match(answer.string("run_key"), UUID);
      assert.equal(answer.at("status"), "queued");
    },
  ),
  prove(
    'Spec, POST /blueprints/{blueprintKey}/trigger: "Path parameter blueprintKey: opaque string trigger key of the Blueprint"',
    "a key that is no Blueprint of the account is 404, the other account's included",
    async () => {
      for (const key of ["unknown", "%00", "conformance-open%20", "a".repeat(400), "conformance-other"]) {
        assertProblem(await first().post(`/blueprints/${key}/trigger`, {}), 404);
      }
    },
  ),
  prove(
    [
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Request body: application/json for structured payloads, or multipart/form-data when an INPUT node expects a file"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "the part may be a file or an inline string, and both may be mixed in one request"',
    ],
    "a file goes as a part beside inline parts, an inline string stands for a file, and other types are refused",
    async () => {
      const mixed = await complete(
        "conformance-echo",
        formOf({ order: "1", text: "inline", attachment: csvFile() }),
      );
      assert.deepEqual(await rowsOf(mixed), CSV_ROWS);
      assert.deepEqual((await readResults(mixed)).at("results.echo.records.0.data"), { text: "inline" });
      assert.deepEqual(
        await rowsOf(await complete("conformance-echo", formOf({ order: "1", attachment: CSV }))),
        CSV_ROWS,
      );
      assert.deepEqual(
        await rowsOf(await complete("conformance-echo", { order: "1", attachment: CSV })),
        CSV_ROWS,
      );
      const urlencoded = { "content-type": "application/x-www-form-urlencoded" };
      assertProblem(await first().post(ECHO, "order=1", urlencoded), 415);
    },
  ),
  prove(
    [
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Routing rules are identical in both encodings (in multipart the part name is the key)"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Top-level key routing"',
    ],
    "the same keys go the same ways as JSON and as multipart, to inputs, metadata, reserved names and nowhere",
    async () => {
      const body = {
        order: "A 7",
        note: "n",
        text: "t",
        data: "[1]",
        run_name: "Name",
        orderr: "misspelled",
      };
      const answers: unknown[] = [];
      for (const sent of [body, formOf(body)]) {
        const results = await readResults(await complete("conformance-echo", sent));
        answers.push([results.at("results"), results.at("executionMetadata.metadata")]);
      }
      assert.deepEqual(answers[0], answers[1]);
      for (const sent of [{ text: "t" }, formOf({ text: "t" })]) {
        assertProblem(await first().post(ECHO, sent), 400, { field: "order" });
      }
      for (const sent of [{ credential_id: "cred_unknown" }, formOf({ credential_id: "cred_unknown" })]) {
        assertProblem(await first().post(LEDGER, sent), 422, { field: "credential_id" });
      }
    },
  ),
  prove(
    [
      'Spec, POST /blueprints/{blueprintKey}/trigger: "credential_id | Reserved"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Credential(s) the run authenticates with"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "A single id or a comma-separated list of ids"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "credential_ids is an accepted alias"',
      'Spec, POST /blueprints/{blueprintKey}/trigger 3: "Most Blueprints need one credential; several may be passed when a workflow touches several systems"',
    ],
    "one id or several in one string, under either name, in both encodings",
    async () => {
      const one = await sharedLedger();
      for (const name of ["credential_id", "credential_ids"]) {
        await complete("conformance-ledger", { [name]: one });
        await complete("conformance-ledger", formOf({ [name]: one }));
        const ids = [
          await connect("strat_conformance_headers", { key: "a-key" }),
          await connect("strat_conformance_bearer", { token: "a-token" }),
        ];
        await complete("conformance-systems", { [name]: ids.join(",") });
      }
    },
  ),
  prove(
    'Spec, POST /blueprints/{blueprintKey}/trigger: "run_name | Reserved"',
    "run_name is never an input nor metadata, and does not change the run",
    async () => {
      const run = await complete("conformance-echo", { order: "1", run_name: "March, part 2" });
      const results = await readResults(run);
      assert.deepEqual(results.at("results.echo.records.0.data"), {});
      assert.deepEqual(results.at("executionMetadata.metadata"), { order: "1" });
    },
  ),
  prove(
    [
      'Spec, POST /blueprints/{blueprintKey}/trigger: "equals the refKey of an INPUT node | That node\'s input"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Objects and arrays are serialised to JSON; strings pass through unchanged"',
    ],
    "strings reach the run byte for byte, objects and arrays as JSON with the digits of their numbers as written",
    async () => {
      const text = ' "{not json}" \\ \t\r\n é 😀 \u2028 {{ $inputs.data }} ';
      assert.deepEqual(await echoOf({ order: "1", text, data: "[1, 2]" }), { text, data: "[1, 2]" });
      const data = await echoOf({ order: "1", data: { b: [1, "two", null], a: { __proto__x: true } } });
      assert.deepEqual(data, { data: '{"b":[1,"two",null],"a":{"__proto__x":true}}' });
      const digits = '{"order":"1","data":[9007199254740993, 1.0, 1e2, -0]}';
      assert.deepEqual(await echoOf(digits), { data: "[9007199254740993,1.0,1e2,-0]" });
    },
  ),
  prove(
    'Spec, POST /blueprints/{blueprintKey}/trigger: "Stored as run metadata, coerced to a string, shown on the run"',
    "metadata of every JSON type is stored as a string and shown with the results",
    async () => {
      const cases = [
        ["text", "text"],
        [12.5, "12.5"],
        [true, "true"],
        [["a", 1], '["a",1]'],
        [{ a: { b: null } }, '{"a":{"b":null}}'],
      ] as const;
      for (const [note, stored] of cases) {
        const results = await readResults(await complete("conformance-echo", { order: "1", note }));
        assert.deepEqual(results.at("executionMetadata.metadata"), { order: "1", note: stored });
      }
    },
  ),
  prove(
    'Spec, POST /blueprints/{blueprintKey}/trigger: "Silently ignored, including misspelled keys (no error)"',
    "unknown keys, __proto__ and constructor among them, change nothing",
    async () => {
      const body =
        '{"order":"1","txt":"x","Order":2,"__proto__":{"text":"x"},"constructor":[1],"credentialId":"cred_x"}';
      const run = await first().post(ECHO, body);
      assert.equal(run.status, 202);
      const { last } = await waitForRun(run.string("id"));
      assert.equal(last.at("status"), "completed");
      const results = await readResults(run.string("id"));
      assert.deepEqual(results.at("results.echo.records.0.data"), {});
      assert.deepEqual(results.at("executionMetadata.metadata"), { order: "1" });
    },
  ),
  prove(
    [
      'Spec, POST /blueprints/{blueprintKey}/trigger 1: "The credential must belong to the same account as the API key, and the API key must be authorised for the Blueprint"',
      'Spec, Errors: "403 | authorization_error | Valid key, no access to the resource"',
    ],
    "another account's credential is refused like an unknown one, a Blueprint outside the key's list with 403",
    async () => {
      const strange = await first().post(LEDGER, { credential_id: (await foreign()).credential });
      const unknown = await first().post(LEDGER, { credential_id: "cred_00000000000000000000000000aa" });
      assertProblem(strange, 422, { code: "invalid_input_data", field: "credential_id" });
      assert.equal(strange.text, unknown.text);
      assertProblem(await limited().post(ECHO, { order: "1" }), 403);
      await trigger("conformance-open", {}, limited());
    },
  ),
  prove(
    [
      'Spec, POST /blueprints/{blueprintKey}/trigger 2: "If a metadata item marked required is omitted, the response is 400"',
      'Spec, Errors: "trigger returns 400 when a required metadata item is missing"',
    ],
    "a missing required item is 400 and named, in both encodings; null counts as missing, an optional item may miss",
    async () => {
      const detail = { code: "invalid_input_data", field: "order" };
      for (const body of [{}, { order: null }, { note: "n" }, undefined, formOf({ note: "n" })]) {
        assertProblem(await first().post(ECHO, body), 400, detail);
      }
      await trigger("conformance-echo", { order: "" });
    },
  ),
  prove(
    'Spec, POST /blueprints/{blueprintKey}/trigger: "Errors: 400 (missing required metadata), 401, 409 (idempotency key reuse with a different body), other statuses per the Errors table"',
    "each documented error of a trigger, and the first of them when there are several",
    async () => {
      assertProblem(await first().post(ECHO, {}), 400);
      assertProblem(await openCaller(deployment().baseUrl, null).post(ECHO, "{"), 401);
      const key = { "idempotency-key": randomUUID() };
      assert.equal((await first().post(ECHO, { order: "1" }, key)).status, 202);
      assertProblem(await first().post(ECHO, { order: "2" }, key), 409, { code: "idempotency_key_reuse" });
      assertProblem(await first().post(ECHO, "[]"), 422);
      assertProblem(await first().post(ECHO, '{"order":'), 422);
      assertProblem(await first().post("/blueprints/unknown/trigger", "{"), 404);
      assertProblem(await limited().post(ECHO, "{"), 403);
    },
  ),
]);
