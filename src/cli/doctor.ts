import { statSync } from "node:fs";
import type { Command } from "commander";
import type { Database } from "#db/connection/pool.ts";
import type { Quotas } from "#domain/quotas.ts";
import { readSigningKey } from "#lib/signing.ts";
import { readKeys } from "#vault/key-source.ts";
import type { Vault } from "#vault/vault.ts";
import type { Composition } from "./composition.ts";
import { checkDeeply, type Finding } from "./doctor-deep.ts";
import { CommandFailed, paint, print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { Interrupted } from "./stop-signal.ts";

export function addDoctor(program: Command, composition: Composition): void {
  program
    .command("doctor")
    .description("check settings, keys, database and vault, and say what to do")
    .option("--deep", "also look through all rows, objects and the audit log for what must never be")
    .addHelpText("after", "\nExamples:\n  latchkey doctor\n  latchkey doctor --deep")
    .action(async (options: { deep?: boolean }) => {
      // Wrong settings are listed all at once, and nothing else can be looked at.
      composition.config();
      let failed = 0;
      const show = ({ ok, text }: Finding): void => {
        if (ok === false) failed++;
        const word = ok === null ? "skip " : ok ? paint("green", "ok   ") : paint("red", "wrong");
        print(`${word} ${text}`);
      };
      show({ ok: true, text: "the settings are in order" });
      const findings = [
        ...checkDataFolder(composition),
        ...(await checkNodeFiles(composition)),
        ...(await checkKeys(composition)),
      ];
      for (const finding of findings) show(finding);
      try {
        await composition.withDatabase(async (db) => {
          for (const finding of await checkDatabase(composition, db)) show(finding);
          for (const finding of await checkTypesInUse(db)) show(finding);
          for (const advice of await listAdvice(composition, db))
            print(`${paint("yellow", "look ")} ${advice}`);
          show(await checkObjectStore(composition, db));
          if (options.deep) for (const finding of await checkDeeply(composition, db)) show(finding);
        });
      } catch (error) {
        if (error instanceof Interrupted) throw error;
        show({ ok: false, text: `database: ${(error as Error).message}` });
      }
      print(
        composition.config().databaseUrl === null
          ? "Not checked: backups. The embedded PostgreSQL comes without pg_dump and psql; stop the service and copy the data folder."
          : "Not checked: backups of the database of DATABASE_URL, of the data folder (keys, tombstones) and of the object store.",
      );
      if (failed > 0)
        throw new CommandFailed(failed === 1 ? "One thing is wrong." : `${failed} things are wrong.`);
    });
}

/** What is in it is private file by file; who may write to the folder could still put other files in their place. */
function checkDataFolder(composition: Composition): readonly Finding[] {
  const { dataDir } = composition.config();
  const mode = statSync(dataDir, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o002) === 0) return [];
  return [
    { ok: false, text: `data folder: others may replace the files in ${dataDir}. Run chmod 700 on it` },
  ];
}

/** Silent where there are none. */
async function checkNodeFiles(composition: Composition): Promise<readonly Finding[]> {
  try {
    const own = [...(await composition.loadNodeTypes()).values()];
    return own.length === 0 ? [] : [{ ok: true, text: `the node types of your own load: ${own.join(", ")}` }];
  } catch (error) {
    return [{ ok: false, text: (error as Error).message }];
  }
}

/** The files are loaded by now. Without one its Blueprints take triggers, and their runs fail. */
async function checkTypesInUse(db: Database): Promise<readonly Finding[]> {
  const { describeMissingType, listMissingTypes } = await import("#actions/upkeep/list-missing-types.ts");
  return (await listMissingTypes(db)).map((each) => ({ ok: false, text: describeMissingType(each) }));
}

/** What goes on as it is, and should be changed. */
async function listAdvice(composition: Composition, db: Database): Promise<readonly string[]> {
  const { describeSecretCondition, listSecretConditions } =
    await import("#actions/upkeep/list-secret-conditions.ts");
  const { describePlain, listPlainHosts } = await import("#actions/upkeep/list-plain-hosts.ts");
  const { isPlainPublic } = await import("#outbound/plain-http.ts");
  const publicUrl = composition.config().publicUrl;
  const url =
    publicUrl !== null && isPlainPublic(publicUrl)
      ? [
          `LATCHKEY_PUBLIC_URL (${publicUrl}) is public and not encrypted: anybody on the way reads credentials, keys and sign-ins. Put a ` +
            "proxy with TLS in front, and unset LATCHKEY_INSECURE",
        ]
      : [];
  const { describePurgeLag } = await import("#actions/runs/purge-runs.ts");
  return [
    ...url,
    ...(await describePurgeLag(db)),
    ...(await listSecretConditions(db)).map(describeSecretCondition),
    ...(await listPlainHosts(db)).map(describePlain),
    ...(await listKeysWithoutScopes(db)),
    ...(await listFullAccounts(db, composition.config().quotas)),
  ];
}

/** Keys that work and were made before there were scopes: one by one where that is more than their Blueprints let expect. */
async function listKeysWithoutScopes(db: Database): Promise<readonly string[]> {
  const { listKeys } = await import("#db/api-keys.ts");
  const keys = (await listKeys(db, null)).filter(
    (key) => key.scopes === null && key.revokedAt === null && !key.isExpired,
  );
  const unlimited = keys.filter(({ blueprintKeys }) => blueprintKeys === null);
  const advice = keys
    .filter((key) => key.blueprintKeys !== null)
    .map(
      ({ id, account, name, blueprintKeys }) =>
        `API key ${id} (${account}${name === "" ? "" : `, ${name}`}) is limited to ${blueprintKeys?.join(", ")}, but from before there were ` +
        `scopes: it may also create sessions and delete any credential of its account. Narrow it: \`latchkey keys rotate ${id} --scope runs\``,
    );
  if (unlimited.length > 0)
    advice.push(
      `${unlimited.length === 1 ? "one API key is" : `${unlimited.length} API keys are`} from before there were scopes, and may do everything ` +
        `in the account: ${unlimited.map(({ id }) => id).join(", ")}. \`latchkey keys rotate --scope\` makes narrower ones`,
    );
  return advice;
}

const NEARLY = 0.8;

async function listFullAccounts(
  db: Database,
  { queuedRuns, storedBytes }: Quotas,
): Promise<readonly string[]> {
  const { listAccountUsage } = await import("#db/account-usage.ts");
  const isNear = (used: number, quota: number | null): quota is number =>
    quota !== null && used >= quota * NEARLY;
  const advice: string[] = [];
  for (const usage of await listAccountUsage(db)) {
    const { account } = usage;
    if (isNear(usage.queuedRuns, queuedRuns))
      advice.push(
        `account ${account}: ${usage.queuedRuns} runs wait; from ${queuedRuns} on its triggers are refused. See what they wait for ` +
          "(`latchkey runs list`), or raise LATCHKEY_QUEUED_RUNS",
      );
    if (isNear(usage.storedBytes, storedBytes))
      advice.push(
        `account ${account}: ${usage.storedBytes} bytes are stored; over ${storedBytes} its triggers are refused. Purge runs ` +
          "(`latchkey runs purge`), shorten its retention, or raise LATCHKEY_STORED_MB",
      );
  }
  return advice;
}

async function checkKeys(composition: Composition): Promise<readonly Finding[]> {
  const config = composition.config();
  const source = composition.keySource();
  return [
    await checkKey("signing key", config.signingKeyFile, config.signingKey !== null, async () =>
      readSigningKey(config.signingKey?.reveal() ?? ""),
    ),
    await checkKey(
      "master key",
      config.masterKeyFile,
      composition.hasMasterKey(),
      async () => await readKeys(source),
    ),
  ];
}

async function checkKey(
  what: string,
  file: string,
  isPresent: boolean,
  read: () => Promise<unknown>,
): Promise<Finding> {
  if (!isPresent) {
    return {
      ok: false,
      text: `${what}: ${file} does not exist. Run \`latchkey init\`, or restore it from your backup`,
    };
  }
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode !== undefined && (mode & 0o077) !== 0) {
    return { ok: false, text: `${what}: others may read ${file}. Run chmod 600 on it` };
  }
  try {
    await read();
  } catch (error) {
    return { ok: false, text: `${what}: ${(error as Error).message}` };
  }
  return { ok: true, text: `the ${what} is there, whole and private` };
}

async function checkDatabase(composition: Composition, db: Database): Promise<readonly Finding[]> {
  const { listLoggingRisks } = await import("#db/connection/logging-risks.ts");
  const { listRoleRisks } = await import("#db/connection/role-risks.ts");
  const { describeSecretProblem, listSecretProblems } =
    await import("#actions/secrets/list-secret-problems.ts");
  const problems = await listSecretProblems(db, composition.secretSources());
  const secrets = problems.map((each) => ({ ok: false, text: describeSecretProblem(each) }));
  // Opening it has already migrated it and refused one that may lose what it acknowledged.
  const database = { ok: true, text: "the database answers, is up to date and durable" };
  // Advice, no fault: PostgreSQL's own defaults show the rows of failed constraints.
  const { databaseUrl, databaseOwnerUrl } = composition.config();
  const hasOwner = databaseUrl === null || databaseOwnerUrl !== null;
  const risks = [...(await listRoleRisks(db, hasOwner)), ...(await listLoggingRisks(db))];
  for (const risk of risks) print(`${paint("yellow", "look ")} ${risk}`);
  const { describeTooFew, listAccountsWithTooFew } = await import("#actions/upkeep/list-too-few-admins.ts");
  const tooFew = (await listAccountsWithTooFew(db)).map((each) => ({
    ok: false,
    text: describeTooFew(each),
  }));
  const { checkSignedRows } = await import("#db/signing/check-signed-rows.ts");
  const { checked, refused } = await checkSignedRows(db, { versions: true });
  const rows: readonly Finding[] =
    refused.length === 0
      ? [{ ok: true, text: `all ${checked} rows that decide something are this installation's` }]
      : refused.map((each) => ({ ok: false, text: each.message }));
  let vault;
  try {
    vault = await composition.openVault(db);
  } catch (error) {
    return [
      database,
      ...rows,
      ...tooFew,
      ...secrets,
      { ok: false, text: `vault: ${(error as Error).message}` },
    ];
  }
  const { isBound, findings } = await checkBinding(composition, db);
  return [
    database,
    ...rows,
    ...tooFew,
    ...secrets,
    await showKeysInUse(db),
    ...findings,
    ...(await checkVault(db, vault, isBound)),
  ];
}

async function checkObjectStore(composition: Composition, db: Database): Promise<Finding> {
  const { checkStore } = await import("#actions/upkeep/check-store.ts");
  const { checkStoreOwner, StoreOfAnother } = await import("#actions/upkeep/claim-store.ts");
  const blobs = await composition.openStore();
  try {
    await checkStoreOwner(db, blobs);
  } catch (error) {
    if (error instanceof StoreOfAnother) return { ok: false, text: error.message };
  }
  const wrong = await checkStore(db, blobs);
  return wrong === null
    ? { ok: true, text: "the object store writes, reads, lists and deletes" }
    : { ok: false, text: `object store: ${wrong}` };
}

/** Which keys the database needs, so that it is known what must not be lost. */
async function showKeysInUse(db: Database): Promise<Finding> {
  const { listKeyStatus } = await import("#actions/vault/master-keys.ts");
  const keys = (await listKeyStatus(db, null)).map(
    ({ kid, state, use }) => `${kid} (${state}, seals ${use.reduce((sum, { total }) => sum + total, 0)})`,
  );
  return { ok: true, text: `the master keys in use: ${keys.join(", ")}` };
}

/** Silent until the first worker of this release has started, which binds what there is. */
async function checkBinding(
  composition: Composition,
  db: Database,
): Promise<{ readonly isBound: boolean; readonly findings: readonly Finding[] }> {
  const nothing = { isBound: false, findings: [] };
  let signing;
  try {
    signing = openOwnSigning(composition);
  } catch {
    // It was told of the key itself.
    return nothing;
  }
  const { readBindingState } = await import("#actions/credentials/bind-credentials.ts");
  const state = await readBindingState(db, signing);
  if (state.kind === "unbound") return nothing;
  const finding =
    state.kind === "bound"
      ? {
          ok: true,
          text: "credentials are sent to the origins that they were connected for, and nowhere else",
        }
      : {
          ok: false,
          text:
            `credentials' origins: ${state.reason}. Somebody has written to the database: nothing is bound anew, and credentials that ` +
            "are bound go on. Find out who; `latchkey audit verify` shows what was done to the log",
        };
  return { isBound: true, findings: [finding] };
}

/** Opens every sealed value: only that proves that the keys and the rows belong together. */
async function checkVault(db: Database, vault: Vault, isBound: boolean): Promise<readonly Finding[]> {
  const { checkSealed } = await import("#actions/vault/check-vault.ts");
  return (await checkSealed(db, vault)).flatMap(({ noun, checked, broken, unbound }) => [
    broken.length === 0
      ? { ok: true, text: `the master key opens all ${checked} ${noun}` }
      : {
          ok: false,
          text: `these ${noun} can't be opened, their rows were damaged: ${broken.join(", ")}`,
        },
    ...(unbound.length === 0 || !isBound
      ? []
      : [
          {
            ok: false,
            text:
              `these ${noun} don't say where they may be sent, and are sent nowhere: ${unbound.join(", ")}. An older process has sealed ` +
              "them, or somebody has put them back. Connect them again, or `latchkey credentials rebind`",
          },
        ]),
  ]);
}
