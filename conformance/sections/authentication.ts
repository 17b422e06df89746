import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openCaller, send } from "../caller.ts";
import { completedRun, createSession, foreign, PASSWORD_STRATEGY } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { deployment, first, limited, other, prove, section } from "../suite.ts";

section("Authentication", [
  prove(
    [
      'Spec, Authentication 1: "Every endpoint requires the header Authorization: Bearer <API_KEY>"',
      'Spec, Authentication 1: "The scheme is HTTP bearer; the token is the account\'s API key"',
    ],
    "the bearer header is taken, its scheme in any case; a key anywhere else is none",
    async () => {
      const { baseUrl, apiKey } = deployment();
      const session = (await createSession(first())).string("id");
      const url = `${baseUrl}/credential-sessions/${session}`;
      const status = async (headers: Record<string, string>, query = "") =>
        (await send("GET", `${url}${query}`, { headers })).status;
      for (const scheme of ["Bearer", "bearer", "BEARER"]) {
        assert.equal(await status({ authorization: `${scheme} ${apiKey}` }), 200);
      }
      assert.equal(await status({ authorization: apiKey }), 401);
      assert.equal(
        await status({ authorization: `Basic ${Buffer.from(`${apiKey}:`).toString("base64")}` }),
        401,
      );
      assert.equal(await status({ "x-api-key": apiKey }), 401);
      assert.equal(await status({ cookie: `api_key=${apiKey}` }), 401);
      assert.equal(await status({}, `?api_key=${apiKey}&access_token=${apiKey}`), 401);
    },
  ),
  prove(
    [
      'Spec, Authentication 2: "Missing, malformed or invalid key: 401 with error.type authentication_error"',
      'Spec, Errors: "401 | authentication_error | Missing, malformed or invalid API key"',
    ],
    "no key, a malformed and an unknown one give one and the same 401, also for unknown paths and bad bodies",
    async () => {
      const { baseUrl, apiKey } = deployment();
      const wrong = apiKey.slice(0, -1) + (apiKey.endsWith("A") ? "B" : "A");
      const texts = new Set<string>();
      for (const key of [null, "", "x", wrong, `${apiKey}A`, `${apiKey} ${apiKey}`, "é".repeat(3)]) {
        const caller = openCaller(baseUrl, key);
        for (const answer of [
          await caller.post("/credential-sessions", "{"),
          await caller.get("/no/such/path"),
          await caller.delete("/credentials/cred_unknown"),
        ]) {
          assertProblem(answer, 401);
          texts.add(answer.text);
        }
      }
      assert.equal(texts.size, 1);
    },
  ),
  prove(
    'Spec, Authentication 3: "Valid key without access to the requested resource: 403 with authorization_error"',
    "a key for one Blueprint and for runs gets 403 for the triggers and runs of the others, and for sessions",
    async () => {
      const run = await completedRun();
      assertProblem(await limited().post("/blueprints/conformance-ledger/trigger", {}), 403);
      assertProblem(await limited().get(`/blueprint-runs/${run}/status`), 403);
      assertProblem(await limited().get(`/blueprint-runs/${run}/results`), 403);
      assert.equal((await limited().post("/blueprints/conformance-open/trigger", {})).status, 202);
      assertProblem(await limited().post("/credential-sessions", { strategy_id: PASSWORD_STRATEGY }), 403);
    },
  ),
  prove(
    [
      'Spec, Authentication 4: "Resources are scoped to the account of the key; a resource of another account is reported as 404 not_found"',
      'Spec, Errors: "404 | not_found | Resource not found or not visible to the key\'s account"',
    ],
    "another account's resources answer exactly as ones that do not exist",
    async () => {
      const mine = await foreign();
      const unknown = randomUUID();
      const pairs = [
        [
          first().get(`/credential-sessions/${mine.session}`),
          first().get("/credential-sessions/sess_00000000000000000000000000aa"),
        ],
        [
          first().delete(`/credentials/${mine.credential}`),
          first().delete("/credentials/cred_00000000000000000000000000aa"),
        ],
        [
          first().get(`/blueprint-runs/${mine.run}/status`),
          first().get("/blueprint-runs/run_00000000000000000000000000aa/status"),
        ],
        [
          first().get(`/blueprint-runs/${mine.runKey}/results`),
          first().get(`/blueprint-runs/${unknown}/results`),
        ],
        [
          first().post("/blueprints/conformance-other/trigger", {}),
          first().post("/blueprints/unknown/trigger", {}),
        ],
        [
          limited().post("/blueprints/conformance-other/trigger", {}),
          limited().post("/blueprints/unknown/trigger", {}),
        ],
      ] as const;
      for (const pair of pairs) {
        const [strange, missing] = await Promise.all(pair);
        assertProblem(strange, 404);
        assert.equal(strange.text, missing.text);
      }
      assert.equal((await other().get(`/credential-sessions/${mine.session}`)).status, 200);
    },
  ),
]);
