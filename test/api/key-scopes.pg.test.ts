import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import { KEY_SCOPES, type KeyScope } from "#domain/key-scope.ts";
import { openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

/** Every operation that wants a key, with the scope that it wants. */
const SCOPE_OF: Readonly<Record<string, KeyScope>> = {
  createCredentialSession: "sessions",
  readCredentialSession: "sessions",
  deleteCredential: "credentials:delete",
  triggerBlueprint: "runs",
  readRunStatus: "runs",
  readRunResults: "runs",
  createEmbeddedCredentialSession: "sessions",
  readEmbeddedCredentialSession: "sessions",
  cancelRun: "runs",
  watchRun: "runs",
  putSchedule: "runs",
  readSchedule: "runs",
  deleteSchedule: "runs",
  readTestClock: "runs",
  putTestClock: "runs",
  triggerBlueprintBatch: "runs",
  readTriggerSchema: "runs",
  watchEvents: "events",
};

let installation: Installation & AsyncDisposable;
let service: RunningService;

before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme\nname: Acme",
    `blueprint: echo
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }`,
  );
  service = await installation.serve();
});
after(async () => await installation[Symbol.asyncDispose]());

const callerWith = async (scopes: readonly KeyScope[], isTest = false): Promise<Caller> =>
  openCaller(service.url, await installation.createKey("acme", { scopes, isTest }));

async function call(caller: Caller, { method, path }: (typeof OPERATIONS)[number]): Promise<ApiAnswer> {
  const place = path.replaceAll(/\{[^}]*\}/g, "nothing");
  if (place === "/events") return await caller.peek(place);
  if (method === "get") return await caller.get(place);
  if (method === "put") return await caller.put(place, {});
  return method === "post" ? await caller.post(place, {}) : await caller.delete(place);
}

test("each operation wants its scope: without it 403 that names it, before anything is looked up", async () => {
  const operations = OPERATIONS.filter(({ isOpen }) => isOpen !== true);
  assert.deepEqual(operations.map(({ id }) => id).toSorted(), Object.keys(SCOPE_OF).toSorted());
  for (const scope of KEY_SCOPES) {
    const [caller, tester] = [await callerWith([scope]), await callerWith([scope], true)];
    for (const operation of operations) {
      const needed = SCOPE_OF[operation.id] ?? "runs";
      const { status, body } = await call(operation.id.endsWith("TestClock") ? tester : caller, operation);
      if (needed === scope) {
        assert.ok([200, 404, 422].includes(status), `${operation.id} with ${scope}: ${status}`);
        continue;
      }
      assert.equal(status, 403, `${operation.id} with ${scope}`);
      assert.equal(body.error.type, "authorization_error");
      assert.match(
        body.error.message,
        new RegExp(`lacks the scope \`${needed}\`.*keys create --scope ${needed}`),
      );
    }
  }
});

test("a recorded answer is not replayed to a key without the scope", async () => {
  const key = { "idempotency-key": "once" };
  assert.equal((await (await callerWith(["runs"])).post("/blueprints/echo/trigger", {}, key)).status, 202);
  assert.equal(
    (await (await callerWith(["sessions"])).post("/blueprints/echo/trigger", {}, key)).status,
    403,
  );
});

test("an unknown path is 404 with any scope, and 401 without a key", async () => {
  assert.equal((await (await callerWith(["sessions"])).get("/nothing")).status, 404);
  assert.equal((await openCaller(service.url, "lk_wrong").get("/nothing")).status, 401);
});
