import assert from "node:assert/strict";
import { isObject } from "../caller.ts";
import { complete, completedRun, download, readResults } from "../flows.ts";
import { TIMESTAMP, UUID } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";
import { ENTRIES } from "../target.ts";

section("Run results", [
  prove(
    [
      'Spec, Run results: "direct or presigned_url; the method actually used"',
      'Spec, Run results: "a node with several output handles uses keys of the form <node_ref>.<handle_key>"',
    ],
    "the results say how they are delivered, and have one key a node, or one a handle",
    async () => {
      const run = await completedRun();
      const results = await readResults(run);
      assert.deepEqual(Object.keys(results.object()), ["dataDeliveryMethod", "results", "executionMetadata"]);
      assert.equal(results.at("dataDeliveryMethod"), "direct");
      const urls = await readResults(run, "?deliveryMethod=presigned_url");
      assert.equal(urls.at("dataDeliveryMethod"), "presigned_url");
      const keys = Object.keys(results.at("results") ?? {});
      assert.deepEqual(keys.toSorted(), ["divided.invalid", "divided.valid", "entries"]);
    },
  ),
  prove(
    [
      'Spec, Run results: "executionMetadata.runKey | string | UUID run key"',
      'Spec, Run results: "executionMetadata.timings.executionBeganAt | timestamp"',
      'Spec, Run results: "executionMetadata.timings.executionCompletedAt | timestamp"',
    ],
    "executionMetadata has the run's key and its two times, and no more",
    async () => {
      const run = await completedRun();
      const status = await first().get(`/blueprint-runs/${run}/status`);
      const results = await readResults(run);
      assert.deepEqual(results.at("executionMetadata"), {
        runKey: status.at("run_key"),
        metadata: {},
        timings: { executionBeganAt: status.at("started_at"), executionCompletedAt: status.at("ended_at") },
      });
      assert.match(results.string("executionMetadata.runKey"), UUID);
      assert.match(results.string("executionMetadata.timings.executionBeganAt"), TIMESTAMP);
    },
  ),
  prove(
    'Spec, Run results: "The run\'s stored metadata (name to string value)"',
    "metadata comes back by name, every value a string",
    async () => {
      const run = await complete("conformance-echo", { order: 42, note: { urgent: true } });
      const results = await readResults(run);
      assert.deepEqual(results.at("executionMetadata.metadata"), { order: "42", note: '{"urgent":true}' });
    },
  ),
  prove(
    [
      'Spec, Run results: "When dataDeliveryMethod is direct, each value in results is an object"',
      'Spec, Run results: "totalRecords | integer"',
      'Spec, Run results: "records | array of record objects"',
      'Spec, Run results: "A record object has data (object: the output fields), errors (array of validation errors for the record) and isValid (boolean)"',
    ],
    "direct results count their records, and a record that breaks a rule says which",
    async () => {
      const results = await readResults(await completedRun());
      for (const value of Object.values(results.at("results") ?? {})) {
        assert.ok(isObject(value));
        assert.deepEqual(Object.keys(value), ["totalRecords", "records"]);
        assert.ok(Array.isArray(value["records"]));
        assert.equal(value["totalRecords"], value["records"].length);
        for (const record of value["records"] as unknown[]) {
          assert.ok(isObject(record));
          assert.deepEqual(Object.keys(record).toSorted(), ["data", "errors", "isValid"]);
          assert.ok(isObject(record["data"]) && Array.isArray(record["errors"]));
          assert.equal(record["isValid"], record["errors"].length === 0);
        }
      }
      const records = results.at("results.entries.records") as { data: unknown; isValid: boolean }[];
      assert.deepEqual(
        records.map(({ data }) => data),
        ENTRIES,
      );
      assert.deepEqual(
        records.map(({ isValid }) => isValid),
        [true, true, false],
      );
      assert.equal(results.at("results.divided.valid.totalRecords"), undefined);
      const divided = results.at("results") as Record<string, { totalRecords: number }>;
      assert.deepEqual(
        [divided["divided.valid"]?.totalRecords, divided["divided.invalid"]?.totalRecords],
        [2, 1],
      );
    },
  ),
  prove(
    [
      'Spec, Run results: "When dataDeliveryMethod is presigned_url, each value in results is a temporary download URL string"',
      'Spec, Run results: "The downloaded body is Brotli-compressed JSON"',
    ],
    "a download URL needs no key and gives Brotli of the JSON that direct shows, once compressed",
    async () => {
      const run = await completedRun();
      const inline = (await readResults(run)).at("results") as Record<string, unknown>;
      const urls = (await readResults(run, "?deliveryMethod=presigned_url")).at("results") as Record<
        string,
        unknown
      >;
      for (const [key, url] of Object.entries(urls)) {
        assert.equal(typeof url, "string");
        const { response, json } = await download(String(url));
        assert.equal(response.headers.get("content-encoding"), null);
        assert.deepEqual(json, inline[key]);
      }
    },
  ),
]);
