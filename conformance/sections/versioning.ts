import assert from "node:assert/strict";
import { send } from "../caller.ts";
import { completedRun } from "../flows.ts";
import { deployment, prove, section } from "../suite.ts";

section("Versioning", [
  prove(
    'Spec, Versioning: "The version is carried in the path prefix /api/v1"',
    "the same path under no prefix, and under another version's, is no endpoint",
    async () => {
      const { baseUrl, apiKey } = deployment();
      const path = `/blueprint-runs/${await completedRun()}/status`;
      const headers = { authorization: `Bearer ${apiKey}` };
      assert.equal((await send("GET", `${baseUrl}${path}`, { headers })).status, 200);
      for (const prefix of ["", "/api", "/api/v2", "/v1"]) {
        const url = baseUrl.replace(/\/api\/v1$/, `${prefix}${path}`);
        assert.equal((await send("GET", url, { headers })).status, 404, url);
      }
    },
  ),
]);
