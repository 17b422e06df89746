import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { SecretSources } from "#actions/secrets/list-secret-problems.ts";
import { accountSecretProblem } from "#domain/account-secret.ts";
import { isJsonObject, texts, type Json } from "#domain/json.ts";
import { Secret } from "#lib/secret.ts";
import type { Read, Setting } from "./read-value.ts";

/** The secrets that are known without the database, each with its origins. */
export function secretSources(
  file: SecretsFile,
  environmentSecret: (name: string) => Secret | null,
): SecretSources {
  return {
    hasVariable: (name) => environmentSecret(name) !== null,
    inFile: new Map(
      [...file].flatMap(([account, secrets]) =>
        [...secrets].map(([name, { origins }]) => [`${account}/${name}`, origins] as const),
      ),
    ),
  };
}

/** Account secrets from the settings: by account (slug), then by name. */
export type SecretsFile = ReadonlyMap<string, ReadonlyMap<string, FileSecret>>;

export interface FileSecret {
  readonly value: Secret;
  readonly origins: readonly string[];
}

export const CLIENT_SECRETS_SETTING: Setting = {
  name: "LATCHKEY_CLIENT_SECRETS_FILE",
  type: "file",
  default: "unset",
  description:
    "JSON file with account secrets, for containers and for processes with only the api role: account, then name, then `value` and `origins`; docs/secrets.md.",
};

const NAME = CLIENT_SECRETS_SETTING.name;

/** Reads the file, once, at the start. Problems never quote a value. */
export function readClientSecrets(read: Read, cwd: string, problems: string[]): SecretsFile {
  const named = read(NAME);
  if (named === undefined) return new Map();
  const file = resolve(cwd, named);
  const wrong = (what: string): SecretsFile => {
    problems.push(`${NAME}: ${file} ${what}`);
    return new Map();
  };
  let parsed: Json;
  try {
    parsed = JSON.parse(readFileSync(file, "utf8")) as Json;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return wrong(
      code === undefined
        ? "is not JSON."
        : `can't be read (${code}). Put it there, readable for this user, or name another file.`,
    );
  }
  if (!isJsonObject(parsed)) return wrong(`must be ${FORM}.`);
  const secrets = new Map<string, ReadonlyMap<string, FileSecret>>();
  for (const [account, ofAccount] of Object.entries(parsed)) {
    if (!isJsonObject(ofAccount)) return wrong(`must be ${FORM}; ${JSON.stringify(account)} is not.`);
    const own = new Map<string, FileSecret>();
    for (const [name, written] of Object.entries(ofAccount)) {
      const secret = readSecret(written);
      if (secret === null) return wrong(`must be ${FORM}; ${account}/${name} is not.`);
      const problem = accountSecretProblem({ name, ...secret });
      if (problem !== null) return wrong(`has an error in ${account}/${name}. ${problem.message}`);
      own.set(name, { value: new Secret(secret.value), origins: secret.origins });
    }
    secrets.set(account, own);
  }
  return secrets;
}

const FORM = '{"<account>": {"<NAME>": {"value": "…", "origins": ["https://login.example.com"]}}}';

function readSecret(written: Json): { readonly value: string; readonly origins: readonly string[] } | null {
  if (!isJsonObject(written) || Object.keys(written).toSorted().join() !== "origins,value") return null;
  const { value, origins } = written;
  if (typeof value !== "string" || !Array.isArray(origins)) return null;
  return texts(origins).length === origins.length ? { value, origins: texts(origins) } : null;
}
