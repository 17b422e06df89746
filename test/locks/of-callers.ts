import { createHash } from "node:crypto";
import {
  deleteCredential,
  deleteCredentialAs,
  deleteCredentialTogether,
} from "#actions/credentials/delete-credential.ts";
import { findStored, replayOrRun } from "#actions/replay-or-run.ts";
import { cancelRunAsOperator } from "#actions/runs/cancel-run.ts";
import { findTriggeredBlueprint, triggerRun, triggerRunTogether } from "#actions/runs/trigger-run.ts";
import { readHostedById } from "#actions/sessions/hosted-session.ts";
import { settleTry } from "#actions/sessions/try-login.ts";
import { submitCredentials } from "#actions/sessions/submit-credentials.ts";
import { fingerprint } from "#domain/idempotency.ts";
import type { TriggerBody } from "#domain/trigger-routing.ts";
import { ADDRESS } from "../no-news.ts";
import { OPERATOR, type Parts, type Transaction } from "./transaction.ts";

const BODY: TriggerBody = new Map([
  ["rows", { kind: "json", text: '[{"n":1}]', isNull: false, items: null }],
]);
const withCredentials = (...ids: readonly string[]): TriggerBody =>
  new Map([["credential_ids", { kind: "string", text: ids.join(",") }]]);

/** As `POST /blueprints/{blueprintKey}/trigger` does it, after its HTTP. */
async function trigger(parts: Parts, blueprint: string, body: TriggerBody, key: string | null) {
  const { caller } = parts.scene;
  const accountId = caller.account.id;
  const version = await findTriggeredBlueprint(parts, caller, blueprint);
  const place = parts.quotas.open(accountId);
  const request = {
    accountId,
    key,
    stored: key === null ? undefined : await findStored(parts, accountId, key),
    fingerprint: () => fingerprint("POST", [blueprint], { kind: "json", canonical: blueprint }),
  };
  return await replayOrRun(
    parts,
    request,
    async (tx) => await triggerRun(tx, caller, version, body, place),
    async (claim) => await triggerRunTogether(parts, caller, version, body, { claim, place }),
  );
}

const deletionOf = ({ scene, tombstones }: Parts, id: string) => ({
  accountId: scene.caller.account.id,
  actor: OPERATOR,
  id,
  tombstone: tombstones.of(id),
});

const keyedDelete = ({ accountId }: { readonly accountId: string }, key: string) => ({
  accountId,
  key,
  fingerprint: () => Buffer.alloc(32),
});

const settle = async (parts: Parts, sessionId: string): Promise<unknown> =>
  await settleTry(parts, await readHostedById(parts, parts.scene.caller.account.id, sessionId));

const NEW_RUNS = "src/db/keyed-inserts.ts#insertedTogether";

export const OF_CALLERS: readonly Transaction[] = [
  {
    name: "trigger",
    opens: [NEW_RUNS, "src/actions/replay-or-run.ts#replayOrRun"],
    run: async (parts) => await trigger(parts, "reads", withCredentials(parts.scene.credential), null),
  },
  {
    name: "trigger with a key",
    opens: [NEW_RUNS, "src/actions/replay-or-run.ts#claimAndRun"],
    run: async (parts) =>
      await trigger(parts, "joins", withCredentials(parts.scene.credential, parts.scene.other), "order-1"),
  },
  {
    name: "two triggers of a process",
    opens: [NEW_RUNS],
    run: async (parts) => {
      const asked = ["order-2", "order-1"].map(async (key) => await trigger(parts, "sends", BODY, key));
      // One may be refused before the other has ended, which would be left in its transaction.
      for (const each of await Promise.allSettled(asked)) if (each.status === "rejected") throw each.reason;
    },
  },
  {
    name: "cancel a held run",
    opens: ["src/actions/runs/cancel-run.ts#cancelRunAsOperator"],
    run: async ({ db, signing, scene }) => await cancelRunAsOperator(db, signing, scene.held.run.id),
  },
  {
    name: "cancel a parked run",
    opens: ["src/actions/runs/cancel-run.ts#cancelRunAsOperator"],
    run: async ({ db, signing, scene }) => await cancelRunAsOperator(db, signing, scene.parked.run),
  },
  {
    name: "cancel a queued run",
    opens: ["src/actions/runs/cancel-run.ts#cancelRunAsOperator"],
    run: async ({ db, signing, scene }) => await cancelRunAsOperator(db, signing, scene.queued[1] ?? ""),
  },
  {
    name: "delete a credential",
    takesSeveral: true,
    opens: ["src/actions/credentials/delete-credential.ts#deleteCredentialAs"],
    run: async (parts) => await deleteCredentialAs(parts, OPERATOR, parts.scene.credential),
  },
  {
    name: "delete the other credential with a key",
    takesSeveral: true,
    opens: ["src/actions/replay-or-run.ts#claimAndRun"],
    run: async (parts) => {
      const deletion = deletionOf(parts, parts.scene.other);
      return await replayOrRun(parts, keyedDelete(deletion, "delete-1"), async (tx) => {
        return (await deleteCredential(parts, tx, deletion)).answer;
      });
    },
  },
  {
    name: "delete both credentials together",
    takesSeveral: true,
    opens: ["src/actions/credentials/delete-credential.ts#deleteGrouped"],
    // What others have locked is left to transactions of their own, which are above.
    run: async (parts) =>
      await Promise.all(
        [parts.scene.other, parts.scene.credential].map(async (id) => {
          const claim = {
            keyHash: createHash("sha256").update(id).digest(),
            fingerprint: Buffer.alloc(32),
            bytesFingerprint: null,
            windowMs: 60_000,
          };
          return await deleteCredentialTogether(parts, deletionOf(parts, id), claim);
        }),
      ),
  },
  {
    name: "submit a session",
    opens: [NEW_RUNS, "src/actions/sessions/hosted-session.ts#vaultCredential"],
    run: async (parts) => {
      const { caller, session } = parts.scene;
      const hosted = await readHostedById(parts, caller.account.id, session);
      return await submitCredentials(parts, hosted, new Map([["token", "t"]]), ADDRESS);
    },
  },
  {
    name: "submit a login that is tried",
    opens: ["src/actions/sessions/try-login.ts#beginTry"],
    run: async (parts) => {
      const hosted = await readHostedById(parts, parts.scene.caller.account.id, parts.scene.tried.fresh);
      return await submitCredentials(parts, hosted, new Map([["token", "t"]]), ADDRESS);
    },
  },
  {
    name: "settle a login without an answer",
    opens: ["src/actions/sessions/try-login.ts#settleTry"],
    run: async (parts) => await settle(parts, parts.scene.tried.unanswered),
  },
  {
    name: "settle a refused login",
    opens: ["src/actions/sessions/try-login.ts#settleTry"],
    takesSeveral: true,
    run: async (parts) => await settle(parts, parts.scene.tried.refused),
  },
];
