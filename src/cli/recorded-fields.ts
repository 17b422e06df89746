import type { StepPlace } from "#answers/browser/define-step.ts";
import type { LocatorConfig } from "#answers/browser/locator.ts";
import type { RecordedAction } from "#outbound/browser/recorder.ts";
import { locatorOf, wordsOf } from "./recorded-locator.ts";

/** A field of a credential, or an input of a Blueprint, in place of what was typed. */
export interface DraftField {
  readonly key: string;
  readonly label: string;
  /** A field type of strategies. */
  readonly type: "text" | "email" | "password" | "totp_secret";
}

export interface FieldNames {
  readonly list: readonly DraftField[];
  /** The template that stands for what was typed into this field. */
  take(action: RecordedAction, locator: LocatorConfig): string;
  /** A text of the page, with what was typed replaced by its template. */
  replace(text: string): string;
}

interface Taken extends DraftField {
  readonly reference: string;
  /** All that was typed into it. */
  readonly typed: string[];
}

const CODE =
  /one.?time|verification|authenticat|\b(otp|totp|2fa|mfa|tan)\b|einmal|(security|sicherheits).?code/i;
const PASSWORD = /pass(word|wort|code|phrase)|kennwort|mot de passe|contraseña|\bpin\b/i;
/** Shorter texts are in half of all names by chance. */
const TYPED_MIN = 3;

const hintsOf = ({ field, locator }: RecordedAction): string => {
  const found = locatorOf(locator);
  return `${found === null ? "" : wordsOf(found)} ${(field?.name ?? "").replaceAll(/[-_.]/g, " ")}`;
};

const isCode = (action: RecordedAction): boolean =>
  action.field?.autocomplete === "one-time-code" || CODE.test(hintsOf(action));

/** Without a look at the field (its page was gone), its name has to tell. */
const isPassword = (action: RecordedAction): boolean =>
  action.field?.type === "password" || (action.field === null && PASSWORD.test(hintsOf(action)));

/** Whether something that only the end user has was typed. */
export const isSecret = (action: RecordedAction): boolean => isPassword(action) || isCode(action);

export function fieldNames(place: StepPlace): FieldNames {
  const fields = new Map<string, Taken>();
  const take = (action: RecordedAction, locator: LocatorConfig): string => {
    const place_ = JSON.stringify(locator);
    const typed = action.typed?.reveal().trim() ?? "";
    const known = fields.get(place_);
    if (known !== undefined) {
      known.typed.push(typed);
      return known.reference;
    }
    const { key: wanted, ...rest } =
      place === "login" ? credentialField(action, locator) : inputField(action, locator);
    const taken = [...fields.values()].map(({ key }) => key);
    let key = wanted;
    for (let number = 2; taken.includes(key); number++) key = `${wanted}_${number}`;
    const name =
      place === "login"
        ? `$credential.${key}${rest.type === "totp_secret" ? ".code" : ""}`
        : `$inputs.${key}`;
    const reference = `{{ ${name} }}`;
    fields.set(place_, { key, ...rest, reference, typed: [typed] });
    return reference;
  };
  return {
    get list() {
      return [...fields.values()].map(({ key, label, type }) => ({ key, label, type }));
    },
    take,
    replace: (text) =>
      [...fields.values()]
        .flatMap(({ typed, reference }) => typed.map((each) => [each, reference] as const))
        .filter(([typed]) => typed.length >= TYPED_MIN)
        .reduce((rest, [typed, reference]) => replaceEvery(rest, typed, reference), text),
  };
}

function replaceEvery(text: string, typed: string, reference: string): string {
  const pattern = typed.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.replaceAll(new RegExp(pattern, "gi"), () => reference);
}

/** What was typed, if it is long enough to be recognised. */
export const typedIn = (actions: readonly RecordedAction[]): readonly string[] =>
  actions.map(({ typed }) => typed?.reveal().trim() ?? "").filter((text) => text.length >= TYPED_MIN);

function credentialField(action: RecordedAction, locator: LocatorConfig): DraftField {
  const label = wordsOf(locator);
  if (isCode(action)) return { key: "totp", label: "Authenticator secret", type: "totp_secret" };
  if (isPassword(action)) return { key: "password", label: label || "Password", type: "password" };
  const { type = "", autocomplete = "", name = "" } = action.field ?? {};
  if (type === "email") return { key: "username", label: label || "Email", type: "email" };
  if (/^(username|email)$/.test(autocomplete) || /user|login|mail/i.test(`${label} ${name}`))
    return { key: "username", label: label || "Username", type: "text" };
  return { key: keyOf(label || name), label: label || name || "Value", type: "text" };
}

const inputField = ({ field }: RecordedAction, locator: LocatorConfig): DraftField => {
  const label = wordsOf(locator) || (field?.name ?? "");
  return { key: keyOf(label), label, type: "text" };
};

/** Words as a key: `Zip code` is `zip_code`. */
function keyOf(words: string): string {
  const key = words
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, 30);
  return /^[a-z]/.test(key) ? key : `value${key === "" ? "" : `_${key}`}`;
}
