import { open, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

/** A file that appears under its name when it is complete and on disk. */
export interface NewFile {
  readonly handle: FileHandle;
  complete(): Promise<void>;
  /** Removes what was written. */
  discard(): Promise<void>;
}

/** Undefined: there is such a file already. Only its owner may read it. */
export async function openNewFile(file: string): Promise<NewFile | undefined> {
  if ((await stat(file).catch(() => null)) !== null) return undefined;
  const part = `${file}.part`;
  // One that a killed process has left is of no use.
  await rm(part, { force: true });
  const handle = await open(part, "wx", 0o600);
  return {
    handle,
    complete: async () => {
      await handle.sync();
      await handle.close();
      await rename(part, file);
      await syncFolder(dirname(file));
    },
    discard: async () => {
      await handle.close().catch(() => {});
      await rm(part, { force: true });
    },
  };
}

/** A new file's name is durable once its folder is synced. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The code of an error of the file system, such as ENOSPC; null: it is another error. */
export function fileErrorCode(error: unknown): string | null {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return code === undefined || syscall === undefined || code.includes(".") ? null : code;
}
