import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createCredentialSession } from "#actions/sessions/create-credential-session.ts";
import { readHostedById } from "#actions/sessions/hosted-session.ts";
import { submitCredentials } from "#actions/sessions/submit-credentials.ts";
import type { Caller } from "#actions/services.ts";
import { findAccountBySlug } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { guardRows, settleRows } from "#db/signing/signed-rows.ts";
import { openEvaluator, type Evaluator } from "#expressions/evaluator.ts";
import { must } from "#lib/assert.ts";
import { TokenBuckets } from "#lib/token-bucket.ts";
import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import { openVault, type Vault } from "#vault/vault.ts";
import { ADDRESS, NO_NEWS } from "../no-news.ts";
import { serverFolder } from "../server-folder.ts";
import { install } from "../service.ts";
import { fixChance } from "./fixed-chance.ts";
import { openStageDatabase, type StageDatabase } from "./stage-database.ts";
import { BLUEPRINTS, CREDENTIALS, DOCUMENTS, type AccountSlug } from "./stage-documents.ts";

/** Makes the database note what no change of a run may do: between two looks it could be over. */
async function noteBreaches(db: Database): Promise<void> {
  await db.query(`create table run_breach (run_id text not null, what text not null);
    create function note_breach() returns trigger language plpgsql as $$ begin
      if old.lease_owner <> new.lease_owner then
        insert into run_breach values (new.id, 'was taken from ' || old.lease_owner || ' by ' || new.lease_owner);
      end if;
      if old.ended_at is not null and new.status <> old.status then
        insert into run_breach values (new.id, 'went on after its end: it was ' || old.status || ', and is ' || new.status);
      end if;
      return null;
    end $$;
    create trigger note_breach after update on run for each row execute function note_breach()`);
}

/** An installation that every simulation begins with as it is. One simulation at a time. */
export interface Stage extends AsyncDisposable {
  readonly signing: Signing;
  readonly folder: string;
  readonly database: StageDatabase;
  readonly expressions: Evaluator;
  readonly vault: Vault;
  readonly callers: ReadonlyMap<AccountSlug, Caller>;
  /** Ids of the credentials that were collected, by name. */
  readonly credentials: ReadonlyMap<string, string>;
}

/** `settings`: of the database's connections. */
export async function openStage(settings: Readonly<Record<string, string>> = {}): Promise<Stage> {
  using _chance = fixChance(0, () => 0);
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(serverFolder(), "latchkey-simulation-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const installation = opened.use(await install());
  const { db } = installation.database;
  await installation.apply(...DOCUMENTS);
  for (const account of Object.keys(BLUEPRINTS)) await installation.createKey(account);
  await noteBreaches(db);
  const key = readFileSync(join(installation.dataFolder, "signing.key"), "utf8");
  const signing = openSigning(readSigningKey(key));
  const { masterKey } = await readKeys(openFileSource(join(installation.dataFolder, "master.key")));
  const vault = openVault({ publicKey: masterKey.publicJwk, privateKeys: masterKey.privateKeys });
  const callers = await learnCallers(db);
  const credentials = await collectCredentials({ db, signing, vault }, callers);
  await settleRows(db);
  const database = opened.use(await openStageDatabase(installation.database, folder, settings));
  guardRows(database.admin, signing, null);
  const expressions = openEvaluator({ threads: 1 });
  opened.defer(async () => await expressions.close());
  const kept = opened.move();
  return {
    signing,
    folder,
    database,
    expressions,
    vault,
    callers,
    credentials,
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

async function learnCallers(db: Database): Promise<Stage["callers"]> {
  const callers = new Map<AccountSlug, Caller>();
  for (const slug of Object.keys(BLUEPRINTS) as AccountSlug[]) {
    const account = must(await findAccountBySlug(db, slug), slug);
    const [key] = await db.query<{ id: string }>("select id from api_key where account_id = $1", [
      account.id,
    ]);
    callers.set(slug, { account, keyId: must(key, "a key").id, blueprintKeys: null, scopes: null });
  }
  return callers;
}

/** As end users give them on the hosted form. */
async function collectCredentials(
  services: { readonly db: Database; readonly signing: Signing; readonly vault: Vault },
  callers: Stage["callers"],
): Promise<ReadonlyMap<string, string>> {
  const { db, signing } = services;
  const credentials = new Map<string, string>();
  for (const [slug, strategies] of Object.entries(CREDENTIALS))
    for (const [name, strategyId] of Object.entries(strategies)) {
      const caller = must(callers.get(slug as AccountSlug), slug);
      const { body } = await db.transaction(
        async (tx) =>
          await createCredentialSession({ publicUrl: () => "http://localhost", signing }, tx, caller, {
            strategyId,
            name: null,
            returnUrl: null,
            metadata: null,
            cancelUrl: null,
            expiresInSeconds: null,
          }),
      );
      const { id } = JSON.parse(body) as { id: string };
      const given = new Map([["token", name]]);
      const login = new Map([
        ["user", name],
        ["password", `password of ${name}`],
      ]);
      const hosted = await readHostedById({ db }, caller.account.id, id);
      const all = { ...services, news: NO_NEWS, buckets: new TokenBuckets() };
      await submitCredentials(all, hosted, slug === "partner" ? given : login, ADDRESS);
      const { session } = await readHostedById({ db }, caller.account.id, id);
      credentials.set(name, must(session.credentialId, "the credential"));
    }
  return credentials;
}
