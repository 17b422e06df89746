import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** The service's data folder as the supervisor sees it. */
export type DataFolder = {
  /** Absolute, links resolved. */
  path: string;
  /**
   * Set if we are root and the folder belongs to an ordinary user: files that we create in it are given to that user, so that
   * running a command as root doesn't lock the service out of its own data.
   */
  owner: { uid: number; gid: number } | null;
};

export function openDataFolder(path: string): DataFolder {
  try {
    const made = mkdirSync(path, { recursive: true, mode: 0o700 });
    if (made !== undefined) chmodSync(path, 0o700);
    const real = realpathSync(path);
    const { uid, gid } = statSync(real);
    const foreign = process.getuid?.() === 0 && uid !== 0;
    return { path: real, owner: foreign ? { uid, gid } : null };
  } catch (error) {
    throw folderError(path, error);
  }
}

export function makeFolder(folder: DataFolder, path: string): void {
  if (existsSync(path)) return;
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (folder.owner !== null) chownSync(path, folder.owner.uid, folder.owner.gid);
  } catch (error) {
    throw folderError(path, error);
  }
}

/** Writes a file that only its owner can read (0600). */
export function writePrivate(folder: DataFolder, path: string, text: string): void {
  try {
    writeFileSync(path, text, { mode: 0o600, flush: true });
    if (folder.owner !== null) chownSync(path, folder.owner.uid, folder.owner.gid);
  } catch (error) {
    throw folderError(dirname(path), error);
  }
}

/** The trimmed text of a file in the data folder; null when there is none. */
export function readIfExists(folder: DataFolder, name: string): string | null {
  const path = join(folder.path, name);
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw folderError(path, error);
  }
}

export function folderError(path: string, error: unknown): Error {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  const remedies: Record<string, string> = {
    EACCES:
      "Run as the user it belongs to, change its permissions, or choose another data folder (LATCHKEY_DATA_DIR).",
    EPERM:
      "Run as the user it belongs to, change its permissions, or choose another data folder (LATCHKEY_DATA_DIR).",
    EROFS: "It is on a read-only file system: choose another data folder (LATCHKEY_DATA_DIR).",
    ENOSPC: "The disk is full: free space, or choose a data folder on another disk.",
    EDQUOT: "The disk quota is used up: free space, or choose a data folder on another disk.",
    ENOTDIR: "A part of this path is a file: choose another data folder (LATCHKEY_DATA_DIR).",
    EEXIST: "A file with this name already exists: choose another data folder (LATCHKEY_DATA_DIR).",
  };
  const remedy =
    remedies[code] ?? "Choose another data folder, or set DATABASE_URL to use a PostgreSQL of your own.";
  return new Error(`The data folder can't be used: ${path} (${code}). ${remedy}`, { cause: error });
}
