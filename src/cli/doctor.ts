import { statSync } from "node:fs";
import type { Command } from "commander";
import { findLastBackup, type LastBackup } from "#db/backups/last-backup.ts";
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
    .description("check settings, keys, database and vault, and suggest fixes")
    .option("--deep", "also check the invariants over all rows, objects and the audit log")
    .addHelpText("after", "\nExamples:\n  latchkey doctor\n  latchkey doctor --deep")
    .action(async (options: { deep?: boolean }) => {
      // Invalid settings are listed all at once; nothing else can be checked then.
      composition.config();
      let failed = 0;
      const show = ({ ok, text }: Finding): void => {
        if (ok === false) failed++;
        const word = ok === null ? "skip " : ok ? paint("green", "ok   ") : paint("red", "wrong");
        print(`${word} ${text}`);
      };
      show({ ok: true, text: "the settings are valid" });
      const findings = [
        ...checkDataFolder(composition),
        ...(await checkNodeFiles(composition)),
        await checkBrowser(composition),
        ...(await checkKeys(composition)),
      ];
      for (const finding of findings) show(finding);
      let lastBackup: LastBackup | undefined;
      try {
        await composition.withDatabase(async (db) => {
          for (const finding of await checkDatabase(composition, db)) show(finding);
          for (const text of await composition.findPoolerProblems(db)) show({ ok: false, text });
          for (const finding of await checkTypesInUse(db)) show(finding);
          for (const finding of await checkMail(db)) show(finding);
          for (const advice of await listAdvice(composition, db))
            print(`${paint("yellow", "look ")} ${advice}`);
          show(await checkObjectStore(composition, db));
          if (options.deep) for (const finding of await checkDeeply(composition, db)) show(finding);
          lastBackup = await findLastBackup(db);
        });
      } catch (error) {
        if (error instanceof Interrupted) throw error;
        show({ ok: false, text: `database: ${(error as Error).message}` });
      }
      print(describeBackup(lastBackup, composition.config().databaseUrl === null));
      if (failed > 0)
        throw new CommandFailed(failed === 1 ? "One thing is wrong." : `${failed} things are wrong.`);
    });
}

/** Whether the file still exists, and whether its keys do, nobody knows but its owner. */
function describeBackup(last: LastBackup | undefined, isEmbedded: boolean): string {
  const keys = "the data folder's keys and tombstones are never in it";
  if (last === undefined)
    return isEmbedded
      ? `${paint("yellow", "look ")} \`latchkey backup\` was never run here: the embedded PostgreSQL has no other way while the service runs`
      : "Not checked: backups of the database of DATABASE_URL, of the data folder (keys, tombstones) and of the object store. `latchkey backup` was never run here.";
  const { takenAt, ageDays, rows, objects, kid } = last;
  const text = `the last backup has ${rows} rows and ${objects} objects as of ${takenAt}, sealed to the key ${kid}; ${keys}`;
  return ageDays < BACKUP_OLD_DAYS
    ? `${paint("green", "ok   ")} ${text}`
    : `${paint("yellow", "look ")} ${text}. That is ${Math.floor(ageDays)} days ago`;
}

const BACKUP_OLD_DAYS = 7;

/** Its files are private, but anyone who can write to the folder could replace them. */
function checkDataFolder(composition: Composition): readonly Finding[] {
  const { dataDir } = composition.config();
  const mode = statSync(dataDir, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o002) === 0) return [];
  return [
    { ok: false, text: `data folder: other users may replace the files in ${dataDir}. Run chmod 700 on it` },
  ];
}

/** Prints nothing when there are none. */
async function checkNodeFiles(composition: Composition): Promise<readonly Finding[]> {
  try {
    const own = [...(await composition.loadNodeTypes()).values()];
    return own.length === 0 ? [] : [{ ok: true, text: `your own node types load: ${own.join(", ")}` }];
  } catch (error) {
    return [{ ok: false, text: (error as Error).message }];
  }
}

/** Starts it once. Where none is installed, only logins and nodes of type `browser` fail. */
async function checkBrowser(composition: Composition): Promise<Finding> {
  const gate = await composition.openEgressGate();
  const browsers = await composition.openBrowsers(gate);
  try {
    const found = await browsers.check();
    if (found === null)
      return {
        ok: null,
        text: "browser: no Chromium is installed, and none is needed without type: browser",
      };
    if (found.leaks)
      return {
        ok: false,
        text: `browser: pages in ${found.version} (${found.path}) can send packets past the egress gate (WebRTC), because this release ignores the switch that forbids it; install another one, or name one in LATCHKEY_BROWSER`,
      };
    const how = found.hasSandbox ? "with its sandbox" : "without its sandbox (LATCHKEY_BROWSER_SANDBOX=off)";
    const where = found.hasOwnNetwork ? ", in a network of its own," : "";
    return {
      ok: true,
      text: `browser: ${found.version} (${found.path}) starts ${how}${where} and sends nothing past the gate`,
    };
  } catch (error) {
    return { ok: false, text: `browser: ${(error as Error).message}` };
  } finally {
    await browsers.close();
    await gate.close();
  }
}

/** The files are loaded at this point. If one is missing, its Blueprints still accept triggers, but the runs fail. */
async function checkTypesInUse(db: Database): Promise<readonly Finding[]> {
  const { describeMissingType, listMissingTypes } = await import("#actions/upkeep/list-missing-types.ts");
  return (await listMissingTypes(db)).map((each) => ({ ok: false, text: describeMissingType(each) }));
}

/** As the workers last found it: the command line may run where the mail server can't be reached. */
async function checkMail(db: Database): Promise<readonly Finding[]> {
  const { readMailState } = await import("#db/operators/operator-mail.ts");
  const mail = await readMailState(db);
  if (mail === undefined) return [];
  if (mail.failingSince === null) return [{ ok: true, text: "mail to operators is sent" }];
  const since = mail.failingSince.toISOString();
  return [
    {
      ok: false,
      text: `mail to operators can't be sent since ${since}: ${mail.failure}. Check LATCHKEY_SMTP_URL and its password`,
    },
  ];
}

/** Things that work but should be changed. */
async function listAdvice(composition: Composition, db: Database): Promise<readonly string[]> {
  const { describeSecretCondition, listSecretConditions } =
    await import("#actions/upkeep/list-secret-conditions.ts");
  const { describePlain, listPlainHosts } = await import("#actions/upkeep/list-plain-hosts.ts");
  const { isPlainPublic } = await import("#outbound/plain-http.ts");
  const publicUrl = composition.config().publicUrl;
  const url =
    publicUrl !== null && isPlainPublic(publicUrl)
      ? [
          `LATCHKEY_PUBLIC_URL (${publicUrl}) is public and not encrypted: anyone on the network path can read credentials, keys and sign-ins. Put a ` +
            "proxy with TLS in front, and unset LATCHKEY_INSECURE",
        ]
      : [];
  const { describePurgeLag } = await import("#actions/runs/purge-runs.ts");
  const { listMachineAdvice } = await import("./doctor-machine.ts");
  return [
    ...url,
    ...(await describePurgeLag(db)),
    ...(await listMachineAdvice(db, composition.config().dataDir)),
    ...(await listSecretConditions(db)).map(describeSecretCondition),
    ...(await listPlainHosts(db)).map(describePlain),
    ...(await listKeysWithoutScopes(db)),
    ...(await listFullAccounts(db, composition.config().quotas)),
  ];
}

/** Working keys that are older than scopes. Those limited to some Blueprints are listed one by one: they may do more than it seems. */
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
        `API key ${id} (${account}${name === "" ? "" : `, ${name}`}) is limited to ${blueprintKeys?.join(", ")}, but was created before there were ` +
        `scopes: it may also create sessions and delete any credential of its account. Narrow it: \`latchkey keys rotate ${id} --scope runs\``,
    );
  if (unlimited.length > 0)
    advice.push(
      `${unlimited.length === 1 ? "one API key is" : `${unlimited.length} API keys are`} older than scopes and may do everything ` +
        `in the account: ${unlimited.map(({ id }) => id).join(", ")}. \`latchkey keys rotate --scope\` creates narrower ones`,
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
        `account ${account}: ${usage.queuedRuns} runs wait; at ${queuedRuns} its triggers are refused. Check what they wait for ` +
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
    return { ok: false, text: `${what}: other users may read ${file}. Run chmod 600 on it` };
  }
  try {
    await read();
  } catch (error) {
    return { ok: false, text: `${what}: ${(error as Error).message}` };
  }
  return { ok: true, text: `the ${what} is present, intact and private` };
}

async function checkDatabase(composition: Composition, db: Database): Promise<readonly Finding[]> {
  const { listLoggingRisks } = await import("#db/connection/logging-risks.ts");
  const { listRoleRisks } = await import("#db/connection/role-risks.ts");
  const { describeSecretProblem, listSecretProblems } =
    await import("#actions/secrets/list-secret-problems.ts");
  const problems = await listSecretProblems(db, composition.secretSources());
  const secrets = problems.map((each) => ({ ok: false, text: describeSecretProblem(each) }));
  // Opening it has already migrated it, and refused a database that may lose acknowledged writes.
  const database = { ok: true, text: "the database responds, is up to date and durable" };
  // Advice, not an error: by default PostgreSQL logs the rows that violate constraints.
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
      ? [{ ok: true, text: `all ${checked} signed rows are genuine` }]
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
    ? { ok: true, text: "the object store can write, read, list and delete" }
    : { ok: false, text: `object store: ${wrong}` };
}

/** Lists the keys that the database needs and that must not be lost. */
async function showKeysInUse(db: Database): Promise<Finding> {
  const { listKeyStatus } = await import("#actions/vault/master-keys.ts");
  const keys = (await listKeyStatus(db, null)).map(
    ({ kid, state, use }) => `${kid} (${state}, seals ${use.reduce((sum, { total }) => sum + total, 0)})`,
  );
  return { ok: true, text: `the master keys in use: ${keys.join(", ")}` };
}

/** Prints nothing until the first worker of this release has bound the existing credentials. */
async function checkBinding(
  composition: Composition,
  db: Database,
): Promise<{ readonly isBound: boolean; readonly findings: readonly Finding[] }> {
  const nothing = { isBound: false, findings: [] };
  let signing;
  try {
    signing = openOwnSigning(composition);
  } catch {
    // The problem of the key itself is already reported.
    return nothing;
  }
  const { readBindingState } = await import("#actions/credentials/bind-credentials.ts");
  const state = await readBindingState(db, signing);
  if (state.kind === "unbound") return nothing;
  const finding =
    state.kind === "bound"
      ? {
          ok: true,
          text: "credentials are sent only to the origins that they were connected for",
        }
      : {
          ok: false,
          text:
            `credentials' origins: ${state.reason}. Someone else has written to the database: nothing more is bound, and credentials that ` +
            "are bound keep working. Find out who it was; `latchkey audit verify` shows what was done to the audit log",
        };
  return { isBound: true, findings: [finding] };
}

/** Opens every sealed value: nothing else proves that the keys fit the rows. */
async function checkVault(db: Database, vault: Vault, isBound: boolean): Promise<readonly Finding[]> {
  const { checkSealed } = await import("#actions/vault/check-vault.ts");
  return (await checkSealed(db, vault)).flatMap(({ noun, checked, broken, unbound }) => [
    broken.length === 0
      ? { ok: true, text: `the master key opens all ${checked} ${noun}` }
      : {
          ok: false,
          text: `these ${noun} can't be opened, because their rows are damaged: ${broken.join(", ")}`,
        },
    ...(unbound.length === 0 || !isBound
      ? []
      : [
          {
            ok: false,
            text:
              `these ${noun} have no origins and are sent nowhere: ${unbound.join(", ")}. An older process sealed ` +
              "them, or someone put old rows back. Connect them again, or run `latchkey credentials rebind`",
          },
        ]),
  ]);
}
