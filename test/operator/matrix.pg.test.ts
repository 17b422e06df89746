// docs/decisions/0022: default deny, route by route and role by role, from the router itself.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import Fastify from "fastify";
import { createOperatorToken } from "#actions/operators/manage-tokens.ts";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { OPERATOR_ROLES, type OperatorRole } from "#domain/operator.ts";
import { registerOperator } from "#operator/routes.ts";
import { operatorDocument } from "../../scripts/generate/operator-document.ts";
import { openBrowser, type OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

/** By operation: who may; `!`: with a second factor just given; `person`: no token. Written by hand: the table in the code is what is tested. */
const MATRIX: Readonly<Record<string, string>> = {
  signIn: "open",
  readSignInMethods: "open",
  beginOidcSignIn: "open",
  finishOidcSignIn: "open",
  beginOidcStepUp: "admin operator reviewer viewer person",
  finishOidcStepUp: "admin operator reviewer viewer person",
  beginDeviceSignIn: "open",
  pollDeviceSignIn: "open",
  readDeviceSignIn: "admin operator reviewer viewer person",
  approveDeviceSignIn: "admin operator reviewer viewer ! person",
  denyDeviceSignIn: "admin operator reviewer viewer person",
  signOut: "admin operator reviewer viewer person",
  stepUp: "admin operator reviewer viewer person",
  readMe: "admin operator reviewer viewer person",
  listOwnSessions: "admin operator reviewer viewer person",
  endOwnSession: "admin operator reviewer viewer person",
  changePassword: "admin operator reviewer viewer person",
  beginSecondFactor: "admin operator reviewer viewer person",
  confirmSecondFactor: "admin operator reviewer viewer person",
  renewRecoveryCodes: "admin operator reviewer viewer person",
  listOperators: "admin",
  createOperator: "admin ! person",
  disableOperator: "admin ! person",
  enableOperator: "admin ! person",
  changeRole: "admin ! person",
  changeOperatorAccounts: "admin ! person",
  resetPassword: "admin ! person",
  resetSecondFactor: "admin ! person",
  unlinkOperator: "admin ! person",
  listTokens: "admin",
  createToken: "admin ! person",
  endOwnToken: "admin operator reviewer viewer",
  revokeToken: "admin ! person",
  listRuns: "admin operator reviewer viewer",
  listFailures: "admin operator reviewer viewer",
  search: "admin operator reviewer viewer",
  readRun: "admin operator reviewer viewer",
  watchChanges: "admin operator reviewer viewer",
  cancelRun: "admin operator",
  purgeRun: "admin operator !",
  readRunAgain: "admin operator",
  runAgain: "admin operator",
  readRunGraph: "admin operator reviewer viewer",
  compareRun: "admin operator reviewer viewer",
  readNodeSample: "admin operator reviewer",
  readRunInput: "admin operator reviewer",
  listResultRecords: "admin operator reviewer",
  downloadResult: "admin operator reviewer",
  readPicture: "admin operator reviewer",
  watchRunPage: "admin operator reviewer",
  readLivePicture: "admin operator reviewer",
  listReviews: "admin operator reviewer viewer",
  readReview: "admin operator reviewer viewer",
  listReviewRecords: "admin operator reviewer",
  approveReview: "admin operator reviewer",
  rejectReview: "admin operator reviewer",
  noteAtReview: "admin operator reviewer person",
  listCredentials: "admin operator viewer",
  readCredential: "admin operator viewer",
  unlockCredential: "admin operator",
  testLogin: "admin operator",
  requestCredential: "admin operator !",
  deleteCredential: "admin operator !",
  listCredentialSessions: "admin operator viewer",
  readCredentialSession: "admin operator viewer",
  linkCredentialSession: "admin operator !",
  revokeCredentialSession: "admin operator !",
  listSchedules: "admin operator viewer",
  readSchedule: "admin operator viewer",
  pauseSchedule: "admin operator",
  resumeSchedule: "admin operator",
  runSchedule: "admin operator",
  listWrites: "admin operator reviewer viewer",
  decideWrite: "admin operator !",
  listWriteGroups: "admin operator reviewer viewer",
  decideWriteGroup: "admin operator !",
  readOverview: "admin operator reviewer viewer",
  readSystem: "admin operator viewer",
  listAccounts: "admin operator viewer",
  readAccount: "admin operator viewer",
  changeAccount: "admin operator !",
  listAudit: "admin operator",
  listAuditChains: "admin operator",
  verifyAuditChain: "admin operator",
  exportAudit: "admin operator",
  checkConfig: "admin operator viewer",
  previewForm: "admin operator viewer",
  planConfig: "admin operator viewer",
  applyConfig: "admin operator !",
  exportConfig: "admin operator viewer",
  readConfigSchema: "admin operator viewer",
  listProposals: "admin operator viewer",
  readProposal: "admin operator viewer",
  confirmProposal: "admin ! person",
  discardProposal: "admin operator",
  listBlueprints: "admin operator viewer",
  readBlueprint: "admin operator viewer",
  readBlueprintHealth: "admin operator viewer",
  listBlueprintVersions: "admin operator viewer",
  readBlueprintVersion: "admin operator viewer",
  publishBlueprintVersion: "admin operator !",
  retireBlueprint: "admin operator !",
  restoreBlueprint: "admin operator !",
  startRun: "admin operator person",
  listStrategies: "admin operator viewer",
  readStrategy: "admin operator viewer",
  listStrategyVersions: "admin operator viewer",
  readStrategyVersion: "admin operator viewer",
  publishStrategyVersion: "admin operator !",
  retireStrategy: "admin operator !",
  restoreStrategy: "admin operator !",
  listKeys: "admin operator",
  createKey: "admin !",
  rotateKey: "admin !",
  revokeKey: "admin !",
  listSecrets: "admin operator viewer",
  setSecret: "admin operator !",
  deleteSecret: "admin operator !",
  listWebhooks: "admin operator viewer",
  createWebhook: "admin operator !",
  updateWebhook: "admin operator !",
  rotateWebhook: "admin operator !",
  disableWebhook: "admin operator !",
  enableWebhook: "admin operator !",
  deleteWebhook: "admin operator !",
  listWebhookDeliveries: "admin operator viewer",
  readWebhookDelivery: "admin operator viewer",
  resendWebhook: "admin operator",
  resendFailedWebhooks: "admin operator",
  pingWebhook: "admin operator",
  triggerWebhookEvent: "admin operator !",
};

let stage: OperatorStage;
const people = new Map<OperatorRole, Someone>();

before(async () => {
  stage = await openOperatorStage();
  for (const role of OPERATOR_ROLES) {
    const someone = await stage.operator(role);
    await stage.giveSecondFactor(someone);
    people.set(role, someone);
  }
});

after(async () => await stage?.[Symbol.asyncDispose]());

const pathOf = ({ path }: OperatorOperation): string => path.replace(/\{\w+\}/g, "nothing_of_this_name");

/** As somebody with a session of their own; a request that may be carried out has nothing in it. */
async function call(
  operation: OperatorOperation,
  someone: Someone,
  options: { readonly isSteppedUp?: boolean; readonly csrf?: string } = {},
): Promise<OperatorAnswer> {
  const browser = await stage.holding(someone, options.isSteppedUp ?? true);
  if (options.csrf !== undefined) browser.csrf = options.csrf;
  return await browser.send(
    operation.method.toUpperCase(),
    pathOf(operation),
    operation.method === "post" ? {} : undefined,
  );
}

const codeOf = (answer: OperatorAnswer): unknown => answer.body?.error?.details?.[0]?.code;
const mayOf = (operation: OperatorOperation): readonly string[] => (MATRIX[operation.id] ?? "").split(" ");
const guarded = OPERATOR_OPERATIONS.filter(({ permission }) => permission !== "open");

test("the router has the operations of the matrix and no other", async () => {
  const app = Fastify({ exposeHeadRoutes: false });
  const served: string[] = [];
  app.addHook("onRoute", ({ method, url }) => void served.push(`${String(method)} ${url}`));
  registerOperator(app, stage.services(), {
    renderProblem: () => assert.fail("not called"),
    readJsonObject: () => assert.fail("not called"),
    renderFormPreview: () => assert.fail("not called"),
  });
  await app.ready();
  await app.close();
  const named = OPERATOR_OPERATIONS.flatMap(({ method, path, formerPath }: OperatorOperation) =>
    [path, formerPath ?? []]
      .flat()
      .map((each) => `${method.toUpperCase()} /operator/v1${each.replace(/\{(\w+)\}/g, ":$1")}`),
  );
  assert.deepEqual(served.toSorted(), named.toSorted());
  assert.deepEqual(OPERATOR_OPERATIONS.map(({ id }) => id).toSorted(), Object.keys(MATRIX).toSorted());
});

test("the committed operator-openapi.json is what the schemas generate", () => {
  const committed = readFileSync(new URL("../../openapi/operator-openapi.json", import.meta.url), "utf8");
  assert.equal(committed, `${JSON.stringify(operatorDocument(), null, 2)}\n`, "run `npm run generate`");
});

test("nobody gets anything without a session, whatever is sent", async () => {
  for (const operation of guarded) {
    const answer = await openBrowser(stage.service.url).send(
      operation.method.toUpperCase(),
      pathOf(operation),
    );
    assert.equal(answer.status, 401, operation.id);
    assert.equal(answer.headers["cache-control"], "no-store");
    assert.deepEqual(Object.keys(answer.body), ["error"]);
  }
});

for (const role of OPERATOR_ROLES) {
  test(`${role}: what the matrix says, and nothing else`, async () => {
    const someone = people.get(role) ?? assert.fail();
    for (const operation of guarded) {
      const answer = await call(operation, someone);
      const isRefused = answer.status === 403 && codeOf(answer) === undefined;
      assert.notEqual(answer.status, 401, operation.id);
      assert.ok(answer.status < 500, `${operation.id}: ${answer.text}`);
      assert.equal(
        !isRefused,
        mayOf(operation).includes(role),
        `${operation.id}: ${answer.status} ${answer.text}`,
      );
    }
  });
}

for (const role of OPERATOR_ROLES) {
  test(`a token with the role ${role}: what the matrix says but for what needs a person, without a second factor`, async () => {
    const newToken = async (): Promise<string> =>
      (
        await createOperatorToken(
          { db: stage.db, signing: stage.signing, actor: { kind: "cli" } },
          { name: `${role}'s`, role, lifetimeMs: 3_600_000, accounts: null },
        )
      ).token;
    const token = await newToken();
    for (const operation of guarded) {
      const answer = await stage.withToken(
        operation.id === "endOwnToken" ? await newToken() : token,
        operation.method.toUpperCase(),
        pathOf(operation),
        operation.method === "post" ? {} : undefined,
      );
      const may = mayOf(operation);
      const expected = !may.includes(role)
        ? "refused"
        : may.includes("person")
          ? "person_required"
          : "allowed";
      const got = answer.status !== 403 ? "allowed" : (codeOf(answer) ?? "refused");
      assert.notEqual(answer.status, 401, operation.id);
      assert.ok(answer.status < 500, `${operation.id}: ${answer.text}`);
      assert.equal(got, expected, `${operation.id}: ${answer.status} ${answer.text}`);
    }
  });
}

test("what is dangerous wants a second factor just given, and no other operation does", async () => {
  for (const operation of guarded) {
    const role = OPERATOR_ROLES.find((each) => mayOf(operation).includes(each)) ?? assert.fail();
    const answer = await call(operation, people.get(role) ?? assert.fail(), { isSteppedUp: false });
    const isAsked = codeOf(answer) === "step_up_required" && operation.id !== "renewRecoveryCodes";
    assert.equal(isAsked, mayOf(operation).includes("!"), `${operation.id}: ${answer.status} ${answer.text}`);
  }
});

test("without a second factor an admin may manage their own sign-in and nothing else", async () => {
  const admin = await stage.operator("admin");
  for (const operation of guarded) {
    const answer = await call(operation, admin);
    const isStopped = answer.status === 403 && codeOf(answer) === "second_factor_missing";
    assert.equal(isStopped, operation.permission !== "self.manage", operation.id);
  }
});

test("a forged value changes nothing for any role", async () => {
  const admin = people.get("admin") ?? assert.fail();
  for (const operation of guarded.filter(({ method }) => method !== "get")) {
    const answer = await call(operation, admin, { csrf: "A".repeat(43) });
    assert.deepEqual([answer.status, codeOf(answer)], [403, "csrf"], operation.id);
  }
});

test("a disabled operator's session is none", async () => {
  const someone = await stage.operator("admin");
  await stage.giveSecondFactor(someone);
  await stage.db.query("update operator set disabled_at = app_now() where id = $1", [someone.id]);
  for (const operation of guarded) assert.equal((await call(operation, someone)).status, 401, operation.id);
});
