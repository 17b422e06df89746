// Every installation that was ever released is upgraded to this program, and whatever was in it opens and runs.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { planConfig } from "#actions/config/apply-config.ts";
import { exportConfig } from "#actions/config/export-config.ts";
import { bindingOf, checkSealed } from "#actions/vault/check-vault.ts";
import { checkSigningKey } from "#actions/keys/check-signing-key.ts";
import { prepareVault, sealSentinel } from "#actions/vault/prepare-vault.ts";
import { reconcileRestore } from "#actions/credentials/restore-reconcile.ts";
import { verifyAudit } from "#actions/audit/verify-audit.ts";
import { checkSignedRows } from "#db/signing/check-signed-rows.ts";
import { listSealed, SEALED_PLACES } from "#db/credentials/sealed-places.ts";
import { SIGNED_KINDS } from "#db/signing/signed-tables.ts";
import { LATEST_EDITION } from "#domain/edition.ts";
import { encodeBinding } from "#vault/binding.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import { generateMasterKey } from "#vault/master-key.ts";
import { readSealed } from "#vault/sealed-format.ts";
import { eventually } from "../eventually.ts";
import { openCaller, submitHostedForm, type Caller } from "../caller.ts";
import { assertInvariants, inspected, signingOf } from "../invariants.ts";
import { codeOf, openBrowser } from "../operator/browser.ts";
import { download, readCompleted, resultsOf } from "./expected.ts";
import { begin, use } from "./live-runs.ts";
import { submitFrame } from "./live-sessions.ts";
import { PASSWORDS } from "./northwind.ts";
import { FIXTURES } from "./frozen-database.ts";
import { openThawed, type Thawed } from "./thawed.ts";

type Promises = Readonly<Record<string, (it: Thawed) => Promise<void> | void>>;

const OF_THE_INSTALLATION: Promises = {
  "its schema is a fresh installation's": ({ schemas }) => {
    assert.equal(schemas.upgraded, schemas.fresh);
  },

  "every sealed value opens and says where it may be sent, and its row names the master key that it needs":
    async ({ db, dataFolder, expected }) => {
      const vault = await prepareVault(db, await readKeys(openFileSource(join(dataFolder, "master.key"))));
      for (const { noun, checked, broken, unbound } of await checkSealed(db, vault)) {
        assert.deepEqual([broken, unbound], [[], []], noun);
        // Installations from before had their clients' secrets in the environment, and no webhooks.
        const isOlder =
          noun === "webhook secrets" ||
          (noun === "account secrets" && "NORTHWIND_CLIENT_SECRET" in expected.environment);
        assert.ok(checked > 0 || isOlder, `there are ${noun}`);
      }
      const kids = new Set<string>();
      for (const place of SEALED_PLACES) {
        for (const row of await listSealed(db, place, { afterId: "", limit: 1_000 })) {
          const read = readSealed(row.sealed, encodeBinding(bindingOf(place, row)));
          assert.equal(read?.kid, row.kid, place.noun);
          kids.add(row.kid);
        }
      }
      assert.ok(kids.has(vault.kid));
      // All were opened, those of an older key too, when they were bound to their origins.
      const [entry] = await db.query<{ detail: string }>(
        "select detail from audit_entry where action = 'credential.bind'",
      );
      assert.equal(JSON.parse(entry?.detail ?? "{}").unopened, 0);
    },

  "an API key is worth what it was: live, replaced, limited, revoked, expired": async ({ url, expected }) => {
    const statuses: Record<string, readonly number[]> = {};
    for (const [name, key] of Object.entries(expected.keys)) {
      const caller = openCaller(url, key);
      const blueprints = ["report", "archive"];
      const asked = blueprints.map(async (each) => (await caller.get(`/blueprints/${each}/schema`)).status);
      statuses[name] = await Promise.all(asked);
    }
    assert.deepEqual(statuses, {
      acme: [200, 200],
      globex: [404, 404],
      limited: [200, 403],
      replaced: [200, 200],
      successor: [200, 200],
      revoked: [401, 401],
      expired: [401, 401],
    });
    // From before there were scopes: it may do what it could.
    const limited = openCaller(url, expected.keys["limited"]);
    assert.equal((await limited.post("/credential-sessions", {})).status, 422);
    assert.equal((await limited.delete("/credentials/cred_0000000000000000000000000000")).status, 404);
  },

  "its documents are in force as they are: exported and applied again, they change nothing": async (it) => {
    const exported = await exportConfig(it.db, null);
    const plan = await planConfig(
      it.db,
      exported.map(({ id, yaml }) => ({ file: id, text: yaml })),
    );
    assert.ok(plan.ok, JSON.stringify(plan));
    assert.ok(plan.changes.length > 0);
    assert.deepEqual(
      plan.changes.filter(({ change }) => change !== "unchanged"),
      [],
    );
  },

  "the documents as they were written come into force in the latest edition, and nothing else of them changes":
    async (it) => {
      const text = readFileSync(join(it.folder, "documents.yaml"), "utf8");
      const plan = await planConfig(it.db, [{ file: "documents.yaml", text }]);
      assert.ok(plan.ok, JSON.stringify(plan));
      const differences = plan.changes.flatMap(({ kind, differences: each }) =>
        kind === "account" ? [] : each,
      );
      assert.ok(differences.length > 0);
      for (const each of differences) assert.deepEqual(each, { path: "edition", after: LATEST_EDITION });
    },

  "its operators sign in with their passwords and second factors; who was signed in still is": async (it) => {
    const kept = openBrowser(it.url);
    kept.cookie = it.expected.operatorCookie;
    assert.equal((await kept.send("GET", "/me")).body.role, "admin");
    for (const { email, password, totpKey, recoveryCodes } of it.expected.operators) {
      const codes = totpKey === null ? [undefined] : [codeOf(totpKey, it.stepsBehind), recoveryCodes[0]];
      for (const code of codes)
        assert.equal((await openBrowser(it.url).signIn(email, password, code)).status, 201, email);
    }
    const [first] = it.expected.operators;
    assert.equal((await openBrowser(it.url).signIn(first?.email ?? "", "another password")).status, 401);
  },
};

const OF_WHAT_WAS_DONE: Promises = {
  "the results of old runs are what they were, byte for byte: in the answer, behind links": async (it) => {
    for (const run of it.expected.completed)
      assert.deepEqual(await readCompleted(it.callers[run.key], run.key, run.id), run);
  },

  "a download link that somebody has gives what it gave": async ({ url, expected }) => {
    const run = expected.completed.find(({ id }) => expected.downloadPath.includes(id));
    assert.equal(await download(`${url}${expected.downloadPath}`), run?.downloads["out"]);
  },

  "runs that failed, were cancelled or purged are just that": async ({
    callers: { acme, globex },
    expected,
  }) => {
    const statusOf = async (run: string): Promise<string> =>
      (await acme.get(`/blueprint-runs/${run}/status`)).body.status;
    for (const run of expected.failed) assert.equal(await statusOf(run), "failed");
    for (const run of expected.cancelled) assert.equal(await statusOf(run), "cancelled");
    for (const run of expected.purged) {
      const read = async (caller: Caller): Promise<number> =>
        (await caller.get(`/blueprint-runs/${run}/results`)).status;
      // One of them is the other account's.
      assert.deepEqual(new Set([await read(acme), await read(globex)]), new Set([400, 404]));
    }
  },

  "what was asked for under an idempotency key is answered as it was, and not done again": async (it) => {
    const count = async (): Promise<readonly unknown[]> =>
      await it.db.query(
        `select (select count(*) from run) as runs, (select count(*) from credential_session) as sessions,
           (select count(*) from embedded_credential_session) as frames`,
      );
    const before = await count();
    for (const { path, idempotencyKey, body, status, text } of it.expected.replays) {
      const answer = await it.callers.acme.post(path, body, { "idempotency-key": idempotencyKey });
      assert.deepEqual([answer.status, answer.text], [status, text]);
      assert.equal(answer.headers.get("idempotent-replay"), "true");
    }
    assert.deepEqual(await count(), before);
  },

  "a deleted credential stays deleted, and its tombstone finds it gone": async (it) => {
    const { callers, expected, db, dataFolder } = it;
    const body = { credential_id: expected.deletedCredential };
    assert.equal((await callers.acme.post("/blueprints/tokens/trigger", body)).status, 422);
    const files = [join(dataFolder, "tombstones.ndjson")];
    const { tombstones, deleted } = await reconcileRestore(db, signingOf(it), files);
    assert.deepEqual({ tombstones, deleted }, { tombstones: 1, deleted: 0 });
  },
};

const OF_CREDENTIALS: Promises = {
  "every open credential logs in with its secret, and its runs give what they gave": async (it) => {
    const { uses, lockedCredential } = it.expected;
    const used = uses.flatMap(({ body }) => body.credential_ids ?? [body.credential_id ?? ""]);
    assert.deepEqual(new Set(it.credentials), new Set([...used, lockedCredential]), "every one of them");
    await Promise.all(
      uses.map(async (each) => assert.deepEqual(await use(it.callers[each.key], each), each.results)),
    );
  },

  "a login that was kept is used: nobody signs in again": ({ northwind }) => {
    assert.ok(northwind.seen("GET /invoices").length > 0);
    assert.deepEqual(northwind.seen("POST /login"), []);
  },

  "a credential that is locked out is left alone": async ({ callers: { acme }, expected, northwind }) => {
    const run = await begin(acme, "invoices", { credential_id: expected.lockedCredential });
    assert.equal((await acme.waitForRun(run)).body.status, "failed");
    assert.deepEqual(northwind.seen("POST /login"), []);
  },

  "a hosted form that nobody has filled in yet can be filled in; one that is over stays over": async (it) => {
    const { callers, expected, url } = it;
    const { id, path } = expected.openSession;
    const values = { username: "bea", password: PASSWORDS.bea };
    assert.equal((await submitHostedForm(`${url}${path}`, values)).status, 200);
    const { body: session } = await callers.acme.get(`/credential-sessions/${id}`);
    assert.equal(session.status, "completed");
    await use(callers.acme, { blueprint: "invoices", body: { credential_id: session.credential_id } });
    const over = await callers.globex.get(`/credential-sessions/${expected.expiredSession.id}`);
    assert.equal(over.body.status, "expired");
    assert.equal((await fetch(`${url}${expected.expiredSession.path}`)).status, 410);
  },

  "a frame that nobody has filled in yet can be filled in": async ({ callers: { acme }, expected, url }) => {
    const { id, path, clientToken } = expected.embedded;
    await submitFrame({ embed_url: `${url}${path}`, client_token: clientToken });
    const { body } = await acme.get(`/embedded-credential-sessions/${id}`);
    await use(acme, { blueprint: "tokens", body: { credential_id: body.credential_id } });
  },
};

const OF_WHAT_WAS_UNDER_WAY: Promises = {
  "runs that nobody had begun complete": async ({ callers: { acme }, expected, states }) => {
    for (const { id, results } of expected.queued) {
      assert.equal(states.get(id), "queued/queued");
      assert.deepEqual(await resultsOf(acme, id), results);
    }
  },

  "a run whose worker was killed goes on from its journal": async (it) => {
    const { id, results } = it.expected.halfway;
    assert.equal(it.states.get(id), "running/reading_second, leased");
    assert.deepEqual(await resultsOf(it.callers.acme, id), results);
    assert.equal(it.northwind.seen("GET /first").length, 0);
    assert.equal(it.northwind.seen("GET /second").length, 1);
  },

  "a run that waits for a person goes on with what they decide": async (it) => {
    const { run, review } = it.expected.parked;
    const admin = openBrowser(it.url);
    admin.cookie = it.expected.operatorCookie;
    await admin.send("GET", "/me");
    const { body } = await admin.send("GET", `/reviews/${review}/records`);
    assert.deepEqual(
      body.items.map(({ data, is_valid }: any) => [data.number, is_valid]),
      [
        ["a", true],
        ["b", false],
        ["c", true],
      ],
    );
    const approved = await admin.send("POST", `/reviews/${review}/approve`, {
      edits: [{ ordinal: 1, data: { number: "b", n: 2 } }],
      exclude: [0],
    });
    assert.equal(approved.status, 200, approved.text);
    await resultsOf(it.callers.acme, run);
    assert.deepEqual(numbersOf(it), ["b", "c"]);
  },

  "a write that may have happened is decided, and sent again under the token that it had": async (it) => {
    const { run, node, record, token } = it.expected.doubtful;
    const admin = openBrowser(it.url);
    admin.cookie = it.expected.operatorCookie;
    await admin.send("GET", "/me");
    const path = `/runs/${run}/writes/${node}/${record}/decide`;
    assert.equal((await admin.send("POST", path, { happened: false })).status, 204);
    await resultsOf(it.callers.acme, run);
    const sent = it.northwind.seen("POST /orders").slice(-2);
    assert.deepEqual(numbersOf(it).slice(-2), ["n1", "n1-after"]);
    assert.equal(sent[0]?.headers["idempotency-key"], token);
  },

  "no write that the target has taken is sent again": ({ northwind, expected }) => {
    const tokens = northwind.seen("POST /orders").map(({ headers }) => String(headers["idempotency-key"]));
    assert.deepEqual(
      tokens.filter((token) => expected.writeTokens.includes(token)),
      [],
    );
  },
};

const numbersOf = ({ northwind }: Thawed): readonly string[] =>
  northwind.seen("POST /orders").map(({ body }) => JSON.parse(body).number);

const AFTER_ALL: Promises = {
  "the audit log is what was written, from its first entry to those of this program": async (it) => {
    await eventually("all entries are chained", async () => {
      const open = await it.db.query("select 1 from audit_entry where sequence is null");
      return open.length === 0 ? true : undefined;
    });
    const { audit, checkpointFiles } = inspected(it);
    const { chains, foreignCheckpoints } = await verifyAudit(it.db, audit, {
      account: null,
      checkpointFiles,
    });
    assert.deepEqual(foreignCheckpoints, []);
    assert.equal(chains.length, 3);
    for (const { chain, findings, entries } of chains)
      assert.deepEqual([findings, entries > 0], [[], true], chain);
  },

  "what must never be is nowhere: `latchkey doctor --deep`": async (it) => {
    await assertInvariants(it);
  },
};

/** Last of all: what is done to the database from outside is no part of a story that must add up. */
const AFTER_SOMEBODY_ELSE: Promises = {
  "all rows that decide were signed once, and the audit log says how many": async ({ db }) => {
    const rows = await db.query<{ detail: string }>(
      "select detail from audit_entry where action = 'row.sign'",
    );
    assert.equal(rows.length, 1);
    const signed = JSON.parse(rows[0]?.detail ?? "{}");
    assert.deepEqual(Object.keys(signed), [...SIGNED_KINDS]);
    // These came with a later program.
    const later = ["account_secret", "two_person_rule", "proposal", "operator_token"];
    for (const kind of SIGNED_KINDS) assert.equal(signed[kind] > 0, !later.includes(kind), kind);
    const { refused } = await checkSignedRows(db, { versions: true });
    assert.deepEqual(refused, []);
  },

  "without its mark, nothing is signed again: neither what was put there since nor what lost its signature":
    async (it) => {
      await it.db.query("delete from row_mark");
      await it.db.query(
        `insert into operator (id, email, password_hash, role) values ('op_forged', 'forged@example.com', 'x', 'admin')`,
      );
      await checkSigningKey(it.db, signingOf(it));
      assert.equal((await it.db.query("select 1 from row_mark")).length, SIGNED_KINDS.length);
      const { refused } = await checkSignedRows(it.db, { versions: true });
      assert.deepEqual(
        refused.map(({ kind, id, fault }) => [kind, id, fault]),
        [["operator", "op_forged", "unsigned"]],
      );
      const told = await it.db.query(
        "select 1 from audit_entry where action = 'row.refuse' and detail like '%row_mark%'",
      );
      assert.equal(told.length, SIGNED_KINDS.length);
    },

  "an inserted operator does not sign in, and a version that was rolled back triggers nothing": async (
    it,
  ) => {
    assert.equal((await openBrowser(it.url).signIn("forged@example.com", "x")).status, 401);
    const keep = await it.db.query<{ id: string; version: number }>(
      "select id, current_version as version from blueprint where key = 'invoices'",
    );
    await it.db.query(
      "update blueprint set current_version = 1 where key = 'invoices' and current_version > 1",
    );
    const moved = keep.some(({ version }) => version > 1);
    assert.ok(moved, "there is an earlier version to go back to");
    const read = await it.callers.acme.get("/blueprints/invoices/schema");
    assert.equal(read.status, 500);
    for (const { id, version } of keep)
      await it.db.query("update blueprint set current_version = $2 where id = $1", [id, version]);
    assert.equal((await it.callers.acme.get("/blueprints/invoices/schema")).status, 200);
  },

  "a swapped key of the vault is named, and a process that only seals does not start": async (it) => {
    const { kid, publicJwk } = generateMasterKey();
    await it.db.query("update vault_key set is_primary = false");
    await it.db.query(
      "insert into vault_key (kid, public_jwk, sentinel, is_primary) values ($1, $2, $3, true)",
      [kid, publicJwk, await sealSentinel(publicJwk)],
    );
    await assert.rejects(
      prepareVault(it.db, null),
      new RegExp(`vault_key ${kid} of the database has no signature`),
    );
  },
};

const fixtures = readdirSync(FIXTURES).filter((name) => /^\d{4}$/.test(name));

test("there are installations to upgrade", () => assert.ok(fixtures.length > 0));

for (const number of fixtures) {
  suite(`the installation of migration ${number}`, () => {
    let it: Thawed;
    before(async () => {
      it = await openThawed(join(FIXTURES, number));
    });
    after(async () => await it?.[Symbol.asyncDispose]());
    const promises = {
      ...OF_THE_INSTALLATION,
      ...OF_WHAT_WAS_DONE,
      ...OF_CREDENTIALS,
      ...OF_WHAT_WAS_UNDER_WAY,
      ...AFTER_ALL,
      ...AFTER_SOMEBODY_ELSE,
    };
    for (const [name, keep] of Object.entries(promises)) test(name, async () => await keep(it));
  });
}
