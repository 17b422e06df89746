import { constants } from "node:fs";
import { access, chown, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Secret } from "#lib/secret.ts";
import { MasterKeyError, readMasterKey, type MasterKey } from "./master-key.ts";

/**
 * Where the vault's private keys come from: a file, a variable, a file wrapped by AWS KMS. To support another place (a secret
 * manager, a hardware module's store), write another function that returns a `KeySource`, and select it in
 * `src/service/open-key-source.ts`. docs/keys.md lists its obligations.
 */
export interface KeySource {
  /** A name for messages: "the file /…/master.key". */
  readonly name: string;
  /** Whether a running process can read keys that were added since it started. If not, it must be restarted. */
  readonly canReread: boolean;
  /** The keyset's text, as `generateMasterKey` makes it. Throws MasterKeyError, never with any of the text. */
  read(): Promise<Secret>;
  /**
   * Stores a keyset atomically and durably. `create` never overwrites (it throws an error with code EEXIST); `replace` replaces
   * the current one. null: it must be stored by hand (a variable).
   */
  readonly keep: ((keyset: Secret, how: "create" | "replace") => Promise<void>) | null;
}

/** Keys with the source from which they can be read again. */
export interface ReadKeys {
  readonly masterKey: MasterKey;
  readonly source: KeySource;
}

/** Throws MasterKeyError. */
export async function readKeys(source: KeySource): Promise<ReadKeys> {
  return { masterKey: readMasterKey((await source.read()).reveal()), source };
}

export function openEnvironmentSource(variable: string, text: Secret): KeySource {
  return { name: `the variable ${variable}`, canReread: false, read: async () => text, keep: null };
}

export function openFileSource(file: string): KeySource {
  return {
    name: `the file ${file}`,
    canReread: true,
    read: async () => new Secret(await readKeyFile(file)),
    keep: async (keyset, how) => await keepFile(file, keyset.reveal(), how),
  };
}

export async function readKeyFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new MasterKeyError(
      `The master key's file ${file} can't be read (${code ?? "unknown error"}). Store it there, readable by this user.`,
    );
  }
}

/** Makes the file readable by its owner only, and syncs it to disk before returning. */
export async function keepFile(file: string, text: string, how: "create" | "replace"): Promise<void> {
  if (how === "create") return await writeDurably(file, text);
  const owner = await stat(file);
  const draft = `${file}.new`;
  // Left behind by a command that was killed.
  await rm(draft, { force: true });
  await writeDurably(draft, text);
  // Root may rotate the keys of a service that runs as another user.
  if (process.getuid?.() === 0) await chown(draft, owner.uid, owner.gid);
  await access(draft, constants.R_OK);
  await rename(draft, file);
  await syncFolder(file);
}

async function writeDurably(file: string, text: string): Promise<void> {
  // `wx` never overwrites, not even when two processes run at once.
  const handle = await open(file, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncFolder(file);
}

async function syncFolder(file: string): Promise<void> {
  const folder = await open(dirname(file), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
