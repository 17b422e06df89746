import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fixtureDocuments } from "../../conformance/fixtures.ts";
import { freePort } from "../free-port.ts";
import { install } from "../service.ts";
import { optionsOf, runSuite } from "./run-suite.ts";

let installation: Awaited<ReturnType<typeof install>>;
let targetOrigin: string;

before(async () => {
  targetOrigin = `http://127.0.0.1:${await freePort()}`;
  installation = await install();
  await installation.apply(fixtureDocuments(targetOrigin));
});

after(async () => await installation?.[Symbol.asyncDispose]());

test("a real installation passes the whole black-box suite", async () => {
  const service = await installation.serve();
  const { code, output } = await runSuite(
    ...(await optionsOf(installation, targetOrigin, `${service.url}/api/v1`)),
  );
  await service.end();
  assert.equal(code, 0, output);
  assert.match(output, /\d+ cases: \d+ passed, 0 failed/);
});

test("the suite fails against what is no such service, and refuses to start without its options", async () => {
  const { code, output } = await runSuite(
    ...(await optionsOf(installation, targetOrigin, "http://127.0.0.1:9/api/v1")),
    "--only",
    "versioning",
  );
  assert.equal(code, 1, output);
  assert.match(output, /1 cases: 0 passed, 1 failed/);
  const without = await runSuite("--api-key", "x");
  assert.equal(without.code, 2);
  assert.match(without.output, /Missing: --base-url, --other-api-key, --limited-api-key/);
});
