import { constants } from "node:fs";
import { access, chown, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Secret } from "#lib/secret.ts";
import { MasterKeyError, readMasterKey, type MasterKey } from "./master-key.ts";

/**
 * Where the vault's private keys come from: a file, a variable, a file wrapped by AWS KMS. For another place (a secret
 * manager, a hardware module's store) write one more function that gives this, and choose it in `src/service/composition.ts` and
 * `src/service/assemble.ts`; docs/keys.md says what it must keep to.
 */
export interface KeySource {
  /** For people: "the file /…/master.key". */
  readonly name: string;
  /** Whether a running process finds here what was added meanwhile; if not, it must be started again. */
  readonly canReread: boolean;
  /** The keyset's text, as `generateMasterKey` makes it. Throws MasterKeyError, never with any of the text. */
  read(): Promise<Secret>;
  /**
   * Keeps a keyset, whole or not at all, and durably. `create` never overwrites (an error with code EEXIST); `replace` puts it
   * in place of the present one. null: people must do it themselves (a variable).
   */
  readonly keep: ((keyset: Secret, how: "create" | "replace") => Promise<void>) | null;
}

/** Keys that were read, and where they are read again. */
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
      `The master key's file ${file} can't be read (${code ?? "unknown error"}). Put it there, readable for this user.`,
    );
  }
}

/** Readable for its owner alone; on disk before this returns. */
export async function keepFile(file: string, text: string, how: "create" | "replace"): Promise<void> {
  if (how === "create") return await writeDurably(file, text);
  const owner = await stat(file);
  const draft = `${file}.new`;
  // What an add that was killed has left behind.
  await rm(draft, { force: true });
  await writeDurably(draft, text);
  // Root rotates the keys of a service that runs as somebody else.
  if (process.getuid?.() === 0) await chown(draft, owner.uid, owner.gid);
  await access(draft, constants.R_OK);
  await rename(draft, file);
  await syncFolder(file);
}

async function writeDurably(file: string, text: string): Promise<void> {
  // `wx`: never overwrites, also when two run at once.
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
