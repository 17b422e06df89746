import { join } from "node:path";
import type { Command } from "commander";
import type { ListedCredential } from "#db/credentials/login-lockouts.ts";
import type { OperatorAnswer, OperatorOperation } from "#contract/operator/operation.ts";
import { Problem } from "#domain/problem.ts";
import { CREDENTIAL_STATE_NAMES as names, rejectedName } from "#domain/labels/states.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, plain, print, printItems, table } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { listOf, minute } from "./pages.ts";
import { addRebind } from "./rebind.ts";
import { listAll, onRemote } from "./remote.ts";

/** For operators on the machine. The public API has no such list, and this one has no secrets. */
export function addCredentials(program: Command, composition: Composition): void {
  const credentials = program
    .command("credentials")
    .description("list, test, unlock, rebind and delete credentials")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey credentials list --account acme\n  latchkey credentials unlock cred_0VrJ…",
    );
  credentials
    .command("list")
    .description("list credentials; their values are never shown")
    .option("--account <name>", "only those of one account")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey credentials list --account acme")
    .action(async (options: { account?: string; json?: boolean }) => await list(composition, options));
  credentials
    .command("unlock")
    .description("unlock a credential after rejected logins, so that runs can log in with it again")
    .argument("<id>", "its id (cred_…), as `credentials list` and the failed run show it")
    .addHelpText("after", "\nExample:\n  latchkey credentials unlock cred_0VrJ…")
    .action(async (id: string) => {
      if (composition.isRemote()) {
        await callOn(composition, id, (await import("#contract/operator/credentials.ts")).unlockCredential);
        return print(`Unlocked ${id}.`);
      }
      const { unlockCredential } = await import("#actions/credentials/unlock-credential.ts");
      const signing = openOwnSigning(composition);
      const found = await composition.withDatabase(async (db) => await unlockCredential(db, signing, id));
      if (!found) throw unknownCredential(id);
      print(`Unlocked ${id}.`);
    });
  credentials
    .command("test-login")
    .description(
      "start a run that only logs in with a credential; a rejected login counts towards the lockout",
    )
    .argument("<id>", "its id (cred_…)")
    .option("--json", "print {id, run_key} as JSON")
    .addHelpText("after", "\nExample:\n  latchkey credentials test-login cred_0VrJ…")
    .action(
      async (id: string, options: { json?: boolean }) =>
        await startTest(composition, id, options.json === true),
    );
  addRebind(credentials, composition);
  credentials
    .command("delete")
    .description("delete a credential immediately and permanently; runs that need it fail")
    .argument("<id>", "its id (cred_…)")
    .addHelpText("after", "\nExample:\n  latchkey credentials delete cred_0VrJ…")
    .action(async (id: string) => await remove(composition, id));
}

/** One of the operations on a credential, at the service of another machine. */
async function callOn<const O extends OperatorOperation>(
  composition: Composition,
  credentialId: string,
  operation: O,
): Promise<OperatorAnswer<O>> {
  return await onRemote(
    composition,
    async (service) => await service.call(operation, { params: { credentialId } }),
  );
}

async function startTest(composition: Composition, id: string, json: boolean): Promise<void> {
  const run = composition.isRemote()
    ? await callOn(composition, id, (await import("#contract/operator/credentials.ts")).testLogin)
    : await startTestHere(composition, id);
  if (json) return print(JSON.stringify(run));
  print(`Started ${run.id}. Follow it: latchkey runs watch ${run.id}, then latchkey runs show ${run.id}`);
}

async function startTestHere(
  composition: Composition,
  id: string,
): Promise<{ readonly id: string; readonly run_key: string }> {
  const [{ testLogin }, { sendRunChanges }] = await Promise.all([
    import("#actions/credentials/test-login.ts"),
    import("#db/runs/run-notifier.ts"),
  ]);
  const signing = openOwnSigning(composition);
  return await composition.withDatabase(async (db) => {
    const started = await testLogin({ db, signing }, { actor: { kind: "cli" } }, id).catch(
      (error: unknown) => {
        throw error instanceof Problem ? unknownCredential(id) : error;
      },
    );
    await sendRunChanges(db, "cli", { waiting: [started.accountId] });
    return { id: started.id, run_key: started.runKey };
  });
}

async function remove(composition: Composition, id: string): Promise<void> {
  if (composition.isRemote())
    await callOn(composition, id, (await import("#contract/operator/credentials.ts")).deleteCredential);
  else await removeHere(composition, id);
  print(`Deleted ${id}.`);
}

/** Writes the tombstone to this machine's data folder; `restore-reconcile` reads it as well. */
async function removeHere(composition: Composition, id: string): Promise<void> {
  const [{ deleteCredentialAs }, { openTombstones }, { sendRunChanges }] = await Promise.all([
    import("#actions/credentials/delete-credential.ts"),
    import("#actions/credentials/tombstones.ts"),
    import("#db/runs/run-notifier.ts"),
  ]);
  const signing = openOwnSigning(composition);
  const log = await composition.log();
  const tombstones = openTombstones(join(composition.config().dataDir, "tombstones.ndjson"));
  await composition.withDatabase(async (db) => {
    const failedRunIds = await deleteCredentialAs(
      { db, signing, log, tombstones },
      { kind: "cli" },
      id,
    ).catch((error: unknown) => {
      throw error instanceof Problem ? unknownCredential(id) : error;
    });
    await sendRunChanges(db, "cli", { changed: failedRunIds });
  });
}

const unknownCredential = (id: string): CommandFailed =>
  new CommandFailed(`There is no credential ${id}. \`latchkey credentials list\` shows the ids.`);

async function readAll(
  composition: Composition,
  account: string | undefined,
): Promise<readonly ListedCredential[]> {
  if (!composition.isRemote()) {
    const { listCredentials } = await import("#db/credentials/login-lockouts.ts");
    return await listOf(composition, account, listCredentials);
  }
  const { listCredentials } = await import("#contract/operator/credentials.ts");
  const of = account === undefined ? {} : { account };
  const items = await onRemote(
    composition,
    async (service) =>
      await listAll(async (page) => await service.call(listCredentials, { query: { ...of, ...page } })),
  );
  return items.map((each) => ({
    id: each.id,
    account: each.account,
    strategy: each.strategy,
    name: each.name,
    createdAt: new Date(each.created_at),
    rejections: each.login_rejections,
    lockedUntil: each.locked_until === null ? null : new Date(each.locked_until),
    isLoggedIn: each.session_until !== null,
  }));
}

async function list(composition: Composition, options: { account?: string; json?: boolean }): Promise<void> {
  const rows = await readAll(composition, options.account);
  if (options.json) return printItems(rows);
  if (rows.length === 0)
    return print("There are no credentials yet. End users create them by submitting hosted forms.");
  print(
    table(
      ["ID", "ACCOUNT", "STRATEGY", "NAME", "CREATED", "STATE"],
      rows.map((row) => [
        row.id,
        row.account,
        row.strategy,
        plain(row.name ?? ""),
        minute(row.createdAt),
        stateOf(row),
      ]),
    ),
  );
}

function stateOf({ lockedUntil, rejections, isLoggedIn }: ListedCredential): string {
  if (lockedUntil) return `${names.locked} until ${minute(lockedUntil)}, ${rejectedName(rejections)}`;
  if (rejections > 0) return rejectedName(rejections);
  return isLoggedIn ? names.loggedIn : names.ready;
}
