import { limits } from "#domain/limits.ts";
import { makeSecretSearch, type SecretSearch } from "./secret-search.ts";

/** A value, and whether it is one only where it stands alone, as six digits do. */
export type RunSecret = string | { readonly value: string; readonly alone: true };

/** What is looked for in all that the targets of a run give. */
export interface RunSecrets {
  readonly inTexts: SecretSearch;
  /** Also where letters lost their case, as in a host name. */
  readonly inMessages: SecretSearch;
  /** Looks for these too from now on: what the run was given while it ran. */
  add(secrets: readonly RunSecret[]): void;
  /** The same for values that replace each other, as the cookies of an idle session do: of many the newest count. */
  addPassing(values: readonly string[]): void;
  /** A key of JSON that stays as it is. */
  isKept(key: string): boolean;
  /** How many texts were changed so far. */
  readonly changes: number;
  countChange(): void;
}

/**
 * `names` are words that the Blueprint's document holds: a key of JSON that is one of them says nothing that its author did not
 * know, and stays.
 */
export function openRunSecrets(
  secrets: readonly RunSecret[],
  names: ReadonlySet<string> = new Set(),
): RunSecrets {
  let inTexts = makeSecretSearch();
  // Few runs have a message: made when there is one.
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
      // To forget is to begin anew.
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

/** Values of which the newest count. */
export interface PassingValues {
  readonly values: readonly string[];
  /** `forgot`: there were too many, and half of them went at once. */
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

/** Shorter ones (`lang=english`) are no secret, and would be found in ordinary text. */
const COOKIE_CHARACTERS_MIN = 16;

/** The values of cookies that are secret. */
export function cookieSecrets(values: readonly string[]): readonly string[] {
  return values.filter((value) => value.length >= COOKIE_CHARACTERS_MIN);
}
