import { limits } from "#domain/limits.ts";
import { makeSecretSearch, type SecretSearch } from "./secret-search.ts";

/** A value, and whether it only matches on its own, like six digits. */
export type RunSecret = string | { readonly value: string; readonly alone: true };

/** The secrets to find in everything that a run's targets send. */
export interface RunSecrets {
  readonly inTexts: SecretSearch;
  /** Also in another letter case, as in host names. */
  readonly inMessages: SecretSearch;
  /** Adds secrets that the run received while it was executing. */
  add(secrets: readonly RunSecret[]): void;
  /** Adds values that replace each other, such as session cookies: if there are many, the newest count. */
  addPassing(values: readonly string[]): void;
  /** Whether a JSON key stays unchanged. */
  isKept(key: string): boolean;
  /** Number of strings changed so far. */
  readonly changes: number;
  countChange(): void;
}

/**
 * `names`: words of the Blueprint's document. JSON keys among them disclose nothing that the author did not know, so they are not
 * redacted.
 */
export function openRunSecrets(
  secrets: readonly RunSecret[],
  names: ReadonlySet<string> = new Set(),
): RunSecrets {
  let inTexts = makeSecretSearch();
  // Few runs have a message, so this is created on demand.
  let inMessages: SecretSearch | null = null;
  let changes = 0;
  const lasting: RunSecret[] = [];
  const passing = passingValues();
  const look = (more: readonly RunSecret[], search: SecretSearch | null): void => {
    for (const secret of more) {
      if (typeof secret === "string") search?.add(secret);
      else search?.add(secret.value, secret.alone);
    }
  };
  const add = (more: readonly RunSecret[]): void => {
    lasting.push(...more);
    for (const search of [inTexts, inMessages]) look(more, search);
  };
  add(secrets);
  return {
    get inTexts() {
      return inTexts;
    },
    get inMessages() {
      if (inMessages === null)
        look([...lasting, ...passing.values], (inMessages = makeSecretSearch({ ignoreCase: true })));
      return inMessages;
    },
    add,
    addPassing(values) {
      const { added, forgot } = passing.add(values);
      if (!forgot) {
        for (const search of [inTexts, inMessages]) look(added, search);
        return;
      }
      // To forget values, the search is rebuilt without them.
      inMessages = null;
      look([...lasting, ...passing.values], (inTexts = makeSecretSearch()));
    },
    isKept: (key) => names.has(key),
    get changes() {
      return changes;
    },
    countChange: () => void changes++,
  };
}

/** Values of which only the newest are kept. */
export interface PassingValues {
  readonly values: readonly string[];
  /** `forgot`: there were too many, and half of them were dropped at once. */
  add(more: readonly string[]): { readonly added: readonly string[]; readonly forgot: boolean };
}

export function passingValues(): PassingValues {
  let values: readonly string[] = [];
  return {
    get values() {
      return values;
    },
    add(more) {
      const added = [...new Set(more)].filter((value) => !values.includes(value));
      values = [...values, ...added];
      if (values.length <= limits.lateCookiesMax) return { added, forgot: false };
      values = values.slice(-limits.lateCookiesMax / 2);
      return { added, forgot: true };
    },
  };
}

/** Shorter ones (`lang=english`) are not secret, and occur in ordinary text. */
const COOKIE_CHARACTERS_MIN = 16;

/** The values of cookies that are secret. */
export function cookieSecrets(values: readonly string[]): readonly string[] {
  return values.filter((value) => value.length >= COOKIE_CHARACTERS_MIN);
}
