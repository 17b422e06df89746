import assert from "node:assert/strict";
import { complete, completedRun, readResults } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

section("Blueprint", [
  prove(
    'Spec, Blueprint: "Identified by bp_... and addressed in triggers by blueprintKey"',
    "two runs of one Blueprint show the same bp_ id, which is no trigger key",
    async () => {
      const runs = [
        await complete("conformance-open"),
        await complete("conformance-open"),
        await completedRun(),
      ];
      const ids: string[] = [];
      for (const run of runs)
        ids.push((await first().get(`/blueprint-runs/${run}/status`)).string("blueprint_id"));
      assert.match(ids[0] ?? "", /^bp_/);
      assert.equal(ids[0], ids[1]);
      assert.notEqual(ids[0], ids[2]);
      assertProblem(await first().post(`/blueprints/${ids[0]}/trigger`, {}), 404);
    },
  ),
  prove(
    'Spec, Blueprint: "INPUT nodes (each with a refKey), output nodes (each with a reference key, optionally with several output handles identified by handle keys), and metadata items"',
    "inputs are taken by refKey, outputs come by reference and handle keys, a required metadata item is required",
    async () => {
      const run = await complete("conformance-echo", { order: "7", text: "by refKey" });
      const results = await readResults(run);
      assert.equal(results.at("results.echo.records.0.data.text"), "by refKey");
      assert.deepEqual(Object.keys(results.at("results") ?? {}).toSorted(), ["echo", "rows"]);
      const handles = (await readResults(await completedRun())).at("results") ?? {};
      assert.deepEqual(Object.keys(handles).toSorted(), ["divided.invalid", "divided.valid", "entries"]);
      assertProblem(await first().post("/blueprints/conformance-echo/trigger", { text: "x" }), 400, {
        field: "order",
      });
    },
  ),
]);
