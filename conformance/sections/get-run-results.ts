import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  complete,
  completedRun,
  download,
  failedRun,
  foreign,
  readResults,
  trigger,
  waitForRun,
} from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";

section("GET /blueprint-runs/{runId}/results", [
  prove(
    'Spec, GET /blueprint-runs/{runId}/results: "Path parameter runId: run_... id or UUID run_key"',
    "results are found by id and by key; anything else is 404, another account's run too",
    async () => {
      const run = await completedRun();
      const runKey = (await first().get(`/blueprint-runs/${run}/status`)).string("run_key");
      assert.equal((await readResults(runKey)).text, (await readResults(run)).text);
      const strange = await foreign();
      const ids = ["run_unknown", randomUUID(), "x", "%00", strange.run, strange.runKey];
      for (const id of ids) assertProblem(await first().get(`/blueprint-runs/${id}/results`), 404);
    },
  ),
  prove(
    [
      'Spec, GET /blueprint-runs/{runId}/results: "direct or presigned_url; when omitted, the large-dataset mode (presigned_url) applies"',
      'Spec, GET /blueprint-runs/{runId}/results: "Response 200: the run results object"',
    ],
    "the query decides the delivery, and without it URLs are given; any other value is 422",
    async () => {
      const run = await completedRun();
      assert.equal((await readResults(run, "?deliveryMethod=direct")).at("dataDeliveryMethod"), "direct");
      for (const query of ["", "?deliveryMethod=presigned_url"]) {
        const answer = await readResults(run, query);
        assert.equal(answer.at("dataDeliveryMethod"), "presigned_url");
        assert.ok(URL.canParse(answer.string("results.entries")));
      }
      for (const value of ["", "mail", "DIRECT", "direct&deliveryMethod=direct"]) {
        const answer = await first().get(`/blueprint-runs/${run}/results?deliveryMethod=${value}`);
        assertProblem(answer, 422, { field: "deliveryMethod" });
      }
    },
  ),
  prove(
    [
      'Spec, GET /blueprint-runs/{runId}/results 1: "Requesting direct falls back automatically to presigned_url when the estimated response size is 5 MB or more"',
      'Spec, GET /blueprint-runs/{runId}/results 1: "Clients inspect the returned dataDeliveryMethod"',
      'Spec, Limits: "Direct delivery size threshold | estimated response 5 MB or larger falls back to presigned URLs"',
    ],
    "a result of more than 5 MB that was asked for directly comes as a URL, one of clearly less comes directly",
    async () => {
      const large = await complete("conformance-sized", { bytes: "5000000" });
      const answer = await readResults(large);
      assert.equal(answer.at("dataDeliveryMethod"), "presigned_url");
      const { json } = await download(answer.string("results.list"));
      assert.equal((json as { totalRecords: number }).totalRecords, 5_000);
      const small = await readResults(await complete("conformance-sized", { bytes: "4000000" }));
      assert.equal(small.at("dataDeliveryMethod"), "direct");
      assert.ok(Buffer.byteLength(small.text) < 5_000_000);
    },
  ),
  prove(
    [
      'Spec, GET /blueprint-runs/{runId}/results: "Call only after status is completed"',
      'Spec, GET /blueprint-runs/{runId}/results 3: "While the run is incomplete the endpoint returns 409"',
      'Spec, Errors: "results returns 409 while the run is incomplete"',
      'Spec, Errors: "409 | conflict | State conflict"',
    ],
    "results are 409 while the run goes on, 200 once it is completed, and 409 for a run that failed",
    async () => {
      const name = `hold-${randomUUID()}`;
      const hold = deployment().target.hold(name);
      const run = (await trigger("conformance-open", { hold: name })).string("id");
      await hold.reached;
      for (const query of ["", "?deliveryMethod=direct"]) {
        assertProblem(await first().get(`/blueprint-runs/${run}/results${query}`), 409);
      }
      hold.release();
      await waitForRun(run);
      await readResults(run);
      assertProblem(await first().get(`/blueprint-runs/${await failedRun()}/results`), 409);
    },
  ),
]);
