import { applyConfig } from "#actions/config/apply-config.ts";
import { testLogin } from "#actions/credentials/test-login.ts";
import { unlockCredential } from "#actions/credentials/unlock-credential.ts";
import { revokeApiKey } from "#actions/keys/revoke-api-key.ts";
import { rotateApiKey } from "#actions/keys/rotate-api-key.ts";
import type { OperatorCaller } from "#actions/operators/operator-caller.ts";
import { startRun } from "#actions/operators/start-run.ts";
import { decideReview, timeOutReview } from "#actions/reviews/decide-review.ts";
import { decideDoubtfulWrite } from "#actions/reviews/decide-write.ts";
import { purgeRunAsOperator } from "#actions/runs/purge-runs.ts";
import { deleteAccountSecretAs } from "#actions/secrets/delete-account-secret.ts";
import { revokeSession } from "#actions/sessions/revoke-session.ts";
import { setAccountSecret } from "#actions/secrets/set-account-secret.ts";
import { rewrapSealed } from "#actions/vault/rewrap-sealed.ts";
import { DOCUMENTS, SECRET } from "./scene.ts";
import { OPERATOR, type Transaction } from "./transaction.ts";

export const OF_OPERATORS: readonly Transaction[] = [
  {
    name: "try a Blueprint",
    opens: ["src/actions/operators/start-run.ts#startRun"],
    run: async (parts) => {
      const { credential, operatorId } = parts.scene;
      const operator = { operatorId } as Partial<OperatorCaller> as OperatorCaller;
      const choice = { account: "acme", blueprint: "reads" };
      return await startRun(parts, operator, choice, { credential_ids: [credential] });
    },
  },
  {
    name: "reject a review",
    opens: ["src/actions/reviews/decide-review.ts#decideReview"],
    run: async (parts) =>
      await decideReview(
        parts,
        parts.scene.parked.review,
        { verdict: "reject" },
        { actor: OPERATOR, by: "a", reason: null },
      ),
  },
  {
    name: "time a review out",
    opens: ["src/actions/reviews/decide-review.ts#timeOutReview"],
    run: async (parts) => await timeOutReview(parts, parts.scene.parked.review),
  },
  {
    name: "decide a write in doubt",
    opens: ["src/actions/reviews/decide-write.ts#decideDoubtfulWrite"],
    run: async (parts) => {
      const { doubtful, caller } = parts.scene;
      const write = { accountId: caller.account.id, runId: doubtful, nodeId: "sent", ordinal: 0 };
      return await decideDoubtfulWrite(parts, write, { happened: true, by: "cli" });
    },
  },
  {
    name: "test a login",
    opens: ["src/actions/credentials/test-login.ts#testLogin"],
    run: async (parts) => await testLogin(parts, { actor: OPERATOR }, parts.scene.credential),
  },
  {
    name: "unlock a credential",
    opens: ["src/actions/credentials/unlock-credential.ts#unlockCredential"],
    run: async ({ db, signing, scene }) => await unlockCredential(db, signing, scene.credential),
  },
  {
    name: "revoke a session",
    opens: ["src/actions/sessions/revoke-session.ts#revokeSession"],
    run: async ({ db, signing, scene }) =>
      await revokeSession(db, signing, { accountId: scene.caller.account.id, id: scene.session }, OPERATOR),
  },
  {
    name: "revoke a session whose login was tried",
    opens: ["src/actions/sessions/revoke-session.ts#revokeSession"],
    run: async ({ db, signing, scene }) => {
      const session = { accountId: scene.caller.account.id, id: scene.tried.unanswered };
      return await revokeSession(db, signing, session, OPERATOR);
    },
  },
  {
    name: "apply documents",
    opens: ["src/actions/config/apply-config.ts#applyConfig"],
    run: async ({ db, signing }) => {
      const texts = DOCUMENTS.map((text) => text.replace("concurrency: 20", "concurrency: 21"));
      const text = texts.map((each) => each.replace("n: ", "m: ")).join("\n---\n");
      return await applyConfig(db, signing, [{ file: "f", text }]);
    },
  },
  {
    name: "rotate an API key",
    opens: ["src/actions/keys/rotate-api-key.ts#rotateApiKey"],
    run: async ({ db, signing, scene }) => {
      const asked = { keyId: scene.caller.keyId, overlapMs: 0, name: null, lifetimeMs: null, scopes: null };
      return await rotateApiKey(db, signing, asked);
    },
  },
  {
    name: "revoke an API key",
    opens: ["src/actions/keys/revoke-api-key.ts#revokeApiKey"],
    run: async ({ db, signing, scene }) => await revokeApiKey(db, signing, scene.caller.keyId),
  },
  {
    name: "set a secret",
    opens: ["src/actions/secrets/set-account-secret.ts#setAccountSecret"],
    run: async (parts) => await setAccountSecret(parts, { ...SECRET, value: "another" }),
  },
  {
    name: "delete a secret",
    opens: ["src/actions/secrets/delete-account-secret.ts#deleteAccountSecretAs"],
    run: async (parts) => await deleteAccountSecretAs(parts, OPERATOR, { ...SECRET, force: true }),
  },
  {
    name: "purge a run",
    opens: ["src/actions/runs/purge-runs.ts#purgeRunAsOperator"],
    run: async (parts) => await purgeRunAsOperator(parts, parts.scene.ended),
  },
  {
    name: "rewrap what is sealed",
    opens: ["src/db/credentials/sealed-places.ts#replaceSealed"],
    run: async ({ db, nextVault }) => await rewrapSealed(db, nextVault, { batch: 10, onProgress: () => {} }),
  },
];
