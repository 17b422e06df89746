import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Secret } from "#lib/secret.ts";
import { CommandFailed } from "./output.ts";

/** What `latchkey login` has kept of one service. */
export interface KeptLogin {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: Secret;
}

interface LoginsFile {
  /** The service that commands use when none is named: that of the last login. */
  readonly current: string | null;
  readonly services: Readonly<Record<string, { readonly token: string }>>;
}

const NONE: LoginsFile = { current: null, services: {} };
const FILE = "logins.json";
const OTHERS = 0o077;

const pathOf = (folder: string): string => join(folder, FILE);

/** Throws CommandFailed for a file that others can read, or that is none of ours. */
function readFile(folder: string): LoginsFile {
  const path = pathOf(folder);
  let text: string;
  try {
    if ((statSync(path).mode & OTHERS) !== 0)
      throw new CommandFailed(
        `${path} has tokens, and other users can read it. Run: chmod 600 ${path}; then sign in again: latchkey login.`,
      );
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    const { code = "error" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return NONE;
    throw new CommandFailed(`${path} can't be read (${code}).`);
  }
  try {
    const file = JSON.parse(text) as LoginsFile;
    if (Object.values(file.services).every(({ token }) => typeof token === "string")) return file;
  } catch {
    // Refused below, without quoting it.
  }
  throw new CommandFailed(`${path} is not a file of logins. Delete it, then sign in again: latchkey login.`);
}

/** Replaces the file at once, so that a reader never sees half of it, and only its owner can read it. */
function writeFile(folder: string, file: LoginsFile): void {
  const path = pathOf(folder);
  const next = `${path}.${process.pid}`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(next, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    chmodSync(next, 0o600);
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    const { code = "error" } = error as NodeJS.ErrnoException;
    throw new CommandFailed(`${path} can't be written (${code}). LATCHKEY_CONFIG_DIR names another folder.`);
  }
}

/** Throws CommandFailed. */
export function findLogin(folder: string | null, url: string): KeptLogin | null {
  const kept = folder === null ? undefined : readFile(folder).services[url];
  return kept ? { url, token: new Secret(kept.token) } : null;
}

/** The service of the last login; null: there is none. Throws CommandFailed. */
export function currentLogin(folder: string | null): string | null {
  if (folder === null) return null;
  const { current, services } = readFile(folder);
  return current !== null && Object.hasOwn(services, current) ? current : null;
}

/** Throws CommandFailed. */
export function keepLogin(folder: string, { url, token }: KeptLogin): void {
  const { services } = readFile(folder);
  writeFile(folder, { current: url, services: { ...services, [url]: { token: token.reveal() } } });
}

/** Throws CommandFailed. */
export function forgetLogin(folder: string, url: string): void {
  const { current, services } = readFile(folder);
  const { [url]: _, ...others } = services;
  writeFile(folder, { current: current === url ? null : current, services: others });
}
