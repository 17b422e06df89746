import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Secret } from "#lib/secret.ts";

/** One setting. The documentation page is generated from this table. */
export interface Setting {
  readonly name: string;
  readonly type: string;
  readonly default: string;
  readonly description: string;
  /** Whether its value is a secret, which is removed from the environment once it is read. */
  readonly isSecret?: true;
}

/** Reads one setting: its value, or the fallback. An invalid value becomes a problem that says what it must be. */
export type Checked = <T>(
  name: string,
  parse: (text: string) => T | undefined,
  wants: string,
  fallback: T,
) => T;

export const oneOf =
  <T extends string>(names: readonly T[]) =>
  (text: string) =>
    names.find((name) => name === text);

/** Without a trailing slash. */
export function readPlainUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const plain = !url.search && !url.hash && !url.username && !url.password;
  return plain && /^https?:$/.test(url.protocol) ? text.replace(/\/+$/, "") : undefined;
}

export type Read = (name: string) => string | undefined;

/** Reads a secret setting from its variable, or else from the file that `<name>_FILE` names. null: neither is set. */
export function readSecret(
  name: string,
  what: string,
  by: { readonly read: Read; readonly cwd: string; readonly problems: string[] },
): Secret | null {
  const value = by.read(name);
  if (value !== undefined) return new Secret(value);
  const named = by.read(`${name}_FILE`);
  if (named === undefined) return null;
  const file = resolve(by.cwd, named);
  try {
    const text = readFileSync(file, "utf8").trim();
    if (text !== "") return new Secret(text);
    by.problems.push(`${name}_FILE: ${file} is empty. Store ${what} there.`);
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    by.problems.push(
      `${name}_FILE: ${file} can't be read (${code}). Store ${what} there, readable by this user, or name another file.`,
    );
  }
  return null;
}
