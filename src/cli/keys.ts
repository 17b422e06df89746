import { InvalidArgumentError, type Command } from "commander";
import { parseDuration } from "#domain/duration.ts";
import { KEY_SCOPES, readScopes, type KeyScope } from "#domain/key-scope.ts";
import { KEY_STATE_NAMES as names } from "#domain/labels/states.ts";
import type { Composition } from "./composition.ts";
import { openOwnSigning } from "./own-signing.ts";
import { CommandFailed, print, printItems, table, tell } from "./output.ts";
import { listOf, minute } from "./pages.ts";
import { onRemote } from "./remote.ts";
import {
  createKeyRemotely,
  listKeysRemotely,
  rotateKeyRemotely,
  type CreateOptions,
  type RotateOptions,
  type ShownKey,
} from "./remote-keys.ts";

export function addKeys(program: Command, composition: Composition): void {
  const keys = program
    .command("keys")
    .description("create, list, rotate and revoke API keys")
    .addHelpText("after", "\nExamples:\n  latchkey keys create --account acme\n  latchkey keys list");
  keys
    .command("create")
    .description("create an API key; it is shown once")
    .requiredOption("--account <name>", "the account's name in its document")
    .option("--name <label>", "a label for people", "")
    .option(
      "--blueprints <keys>",
      "only these Blueprints, separated by commas (default: all)",
      readBlueprints,
    )
    .option(
      "--scope <scopes>",
      `what it may do, separated by commas: ${KEY_SCOPES.join(", ")} (default: all; runs with --blueprints)`,
      readScopeNames,
    )
    .option("--expires <duration>", "for example 90d (default: never)", readLifetime)
    .option("--test", "a key of test mode (lk_test_…): its runs reach nothing but the test target")
    .option("--json", 'print one line {"id", "key"}')
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey keys create --account acme --blueprints supplier-invoices --expires 90d\n" +
        "  latchkey keys create --account acme --test",
    )
    .action(async (options: CreateOptions) => await create(composition, options));
  keys
    .command("list")
    .description("list API keys; the keys themselves are never stored")
    .option("--account <name>", "only those of one account")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey keys list --account acme")
    .action(async (options: { account?: string; json?: boolean }) => await list(composition, options));
  addRotate(keys, composition);
  keys
    .command("revoke")
    .description("revoke an API key immediately")
    .argument("<id>", "its id (key_…), as `keys list` shows it")
    .addHelpText("after", "\nExample:\n  latchkey keys revoke key_0VrJ…")
    .action(async (id: string) => {
      if (composition.isRemote()) {
        const { revokeKey } = await import("#contract/operator/keys.ts");
        await onRemote(
          composition,
          async (service) => await service.call(revokeKey, { params: { keyId: id } }),
        );
        return print(`Revoked ${id}.`);
      }
      const { revokeApiKey } = await import("#actions/keys/revoke-api-key.ts");
      const found = await composition.withDatabase(
        async (db) => await revokeApiKey(db, openOwnSigning(composition), id),
      );
      if (!found) throw new CommandFailed(`There is no API key ${id}. \`latchkey keys list\` shows the ids.`);
      print(`Revoked ${id}.`);
    });
}

function addRotate(keys: Command, composition: Composition): void {
  keys
    .command("rotate")
    .description("replace an API key; the old one works for an overlap; the new one is shown once")
    .argument("<id>", "the old key's id (key_…), as `keys list` shows it")
    .option("--overlap <duration>", "how long the old key still works; 0 revokes it immediately", readOverlap)
    .option("--name <label>", "a label for people (default: the old key's)")
    .option(
      "--scope <scopes>",
      `what it may do, separated by commas: ${KEY_SCOPES.join(", ")} (default: as the old key)`,
      readScopeNames,
    )
    .option("--expires <duration>", "for example 90d (default: the old key's lifetime)", readLifetime)
    .option("--json", 'print one line {"id", "key", "replaces", "replacedEndsAt"}')
    .addHelpText(
      "after",
      "\nThe new key has the old one's account, Blueprints and scopes. The default overlap is 24h.\n" +
        "\nExample:\n  latchkey keys rotate key_0VrJ… --overlap 2h",
    )
    .action(async (id: string, options: RotateOptions) => await rotate(composition, id, options));
}

const OVERLAP_MS_DEFAULT = 86_400_000;
const OVERLAP_MS_MAX = 90 * 86_400_000;

function readOverlap(text: string): number {
  const overlapMs = parseDuration(text);
  if (overlapMs === undefined || overlapMs > OVERLAP_MS_MAX)
    throw new InvalidArgumentError("It must be 0 or a duration such as 30m or 24h, at most 90d.");
  return overlapMs;
}

interface Rotated {
  readonly id: string;
  readonly key: string;
  readonly replaces: string;
  readonly replacedEndsAt: Date;
}

async function rotateHere(composition: Composition, keyId: string, options: RotateOptions): Promise<Rotated> {
  const signing = openOwnSigning(composition);
  const [{ checkSigningKey }, { rotateApiKey }] = await Promise.all([
    import("#actions/keys/check-signing-key.ts"),
    import("#actions/keys/rotate-api-key.ts"),
  ]);
  return await composition.withDatabase(async (db) => {
    await checkSigningKey(db, signing);
    return await rotateApiKey(db, signing, {
      keyId,
      overlapMs: options.overlap ?? OVERLAP_MS_DEFAULT,
      name: options.name ?? null,
      scopes: options.scope ?? null,
      lifetimeMs: options.expires ?? null,
    });
  });
}

async function rotate(composition: Composition, keyId: string, options: RotateOptions): Promise<void> {
  const made = composition.isRemote()
    ? await rotateKeyRemotely(composition, keyId, {
        ...options,
        overlap: options.overlap ?? OVERLAP_MS_DEFAULT,
      })
    : await rotateHere(composition, keyId, options);
  if (options.json) return print(JSON.stringify(made));
  tell(
    `API key ${made.id} replaces ${keyId}, which ${options.overlap === 0 ? "is revoked" : `works until ${made.replacedEndsAt.toISOString()}`}. ` +
      "It is shown only once; keep it where you keep secrets:",
  );
  print(made.key);
}

const LIFETIME_MS_MAX = 3_650 * 86_400_000;

function readLifetime(text: string): number {
  const lifetimeMs = parseDuration(text);
  if (lifetimeMs === undefined || lifetimeMs <= 0 || lifetimeMs > LIFETIME_MS_MAX) {
    throw new InvalidArgumentError("It must be a duration such as 12h or 90d, at most 3650d.");
  }
  return lifetimeMs;
}

function readBlueprints(text: string): string[] {
  const keys = text.split(",").map((key) => key.trim());
  // A script's empty variable must not create a key that may do nothing, or everything.
  if (keys.some((key) => key === ""))
    throw new InvalidArgumentError("Name Blueprints, or omit the option to allow all of them.");
  return [...new Set(keys)];
}

function readScopeNames(text: string): readonly KeyScope[] {
  const scopes = readScopes(text.split(",").map((name) => name.trim()));
  if (scopes === undefined)
    throw new InvalidArgumentError(`The scopes are ${KEY_SCOPES.join(", ")}; separate several by commas.`);
  return scopes;
}

async function createHere(
  composition: Composition,
  options: CreateOptions,
): Promise<{ readonly id: string; readonly key: string }> {
  const signing = openOwnSigning(composition);
  const [{ checkSigningKey }, { createApiKey }] = await Promise.all([
    import("#actions/keys/check-signing-key.ts"),
    import("#actions/keys/create-api-key.ts"),
  ]);
  return await composition.withDatabase(async (db) => {
    await checkSigningKey(db, signing);
    return await createApiKey(db, signing, {
      account: options.account,
      name: options.name,
      blueprintKeys: options.blueprints ?? null,
      scopes: options.scope ?? null,
      lifetimeMs: options.expires ?? null,
      isTest: options.test === true,
    });
  });
}

async function create(composition: Composition, options: CreateOptions): Promise<void> {
  const made = composition.isRemote()
    ? await createKeyRemotely(composition, options)
    : await createHere(composition, options);
  if (options.json) return print(JSON.stringify(made));
  tell(
    `API key ${made.id} of ${options.test ? "test mode of " : ""}account ${options.account}. It is shown only once; keep it where you keep secrets:`,
  );
  print(made.key);
}

async function readKeys(composition: Composition, account: string | undefined): Promise<readonly ShownKey[]> {
  if (composition.isRemote()) return await listKeysRemotely(composition, account);
  const { listKeys } = await import("#db/api-keys.ts");
  return await listOf(composition, account, listKeys);
}

async function list(composition: Composition, options: { account?: string; json?: boolean }): Promise<void> {
  const rows = await readKeys(composition, options.account);
  if (options.json) return printItems(rows);
  if (rows.length === 0)
    return print("There are no API keys yet. Create one: latchkey keys create --account NAME");
  print(
    table(
      ["ID", "ACCOUNT", "NAME", "BLUEPRINTS", "SCOPES", "STATE", "CREATED", "LAST USED"],
      rows.map((key) => [
        key.id,
        key.account,
        key.name,
        key.blueprintKeys?.join(",") ?? "all",
        key.scopes?.join(",") ?? "all (from before scopes)",
        stateOf(key),
        minute(key.createdAt),
        key.lastUsedAt === null ? "never" : minute(key.lastUsedAt),
      ]),
    ),
  );
}

/** A key's state and when it ends: a rotated one at the end of its overlap, another at its expiry. */
function stateOf(key: ShownKey): string {
  const why = key.replacedBy === null ? "" : `, replaced by ${key.replacedBy}`;
  if (key.revokedAt) return `${names.revoked}${why}`;
  if (!key.expiresAt) return names.active;
  if (key.isExpired) return `${names.expired}${why}`;
  return key.replacedBy === null
    ? `${names.expiring} ${key.expiresAt.toISOString().slice(0, 10)}`
    : `${names.expiring} ${minute(key.expiresAt)}${why}`;
}
