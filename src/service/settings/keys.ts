import { accessSync, constants, readFileSync } from "node:fs";
import { Secret } from "#lib/secret.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface MasterKeyPlace {
  readonly masterKey: Secret | null;
  readonly masterKeyFile: string;
  readonly masterKeyKms: string | null;
}

/** Where the master key is. For a file, only checks that it is readable. */
export function readMasterKeyPlace(
  environment: Environment,
  masterKeyFile: string,
  problems: string[],
): MasterKeyPlace {
  const value = environment["LATCHKEY_MASTER_KEY"]?.trim();
  const masterKeyKms = environment["LATCHKEY_MASTER_KEY_KMS"]?.trim() || null;
  if (value && masterKeyKms)
    problems.push(
      "LATCHKEY_MASTER_KEY and LATCHKEY_MASTER_KEY_KMS can't both be set: a wrapped master key is always in a file.",
    );
  if (!value)
    ifReadable(environment, "LATCHKEY_MASTER_KEY", masterKeyFile, problems, () =>
      accessSync(masterKeyFile, constants.R_OK),
    );
  return { masterKey: value ? new Secret(value) : null, masterKeyFile, masterKeyKms };
}

/** The variable takes precedence over the file. */
export function readKey(
  environment: Environment,
  name: string,
  file: string,
  problems: string[],
): Secret | null {
  const value = environment[name]?.trim();
  if (value) return new Secret(value);
  return ifReadable(environment, name, file, problems, () => new Secret(readFileSync(file, "utf8").trim()));
}

/** A configured file must exist; the default one may be missing (`init` creates it). */
function ifReadable<T>(
  environment: Environment,
  name: string,
  file: string,
  problems: string[],
  look: () => T,
): T | null {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const named = Boolean(environment[`${name}_FILE`]?.trim());
    if (code === "ENOENT" && !named) return null;
    const remedy = named
      ? "Store the key there, readable by this user, or name another file"
      : "Make it readable by this user, or choose another folder";
    problems.push(
      `${named ? `${name}_FILE` : "LATCHKEY_DATA_DIR"}: ${file} can't be read (${code ?? "unknown error"}). ${remedy}.`,
    );
    return null;
  }
}
