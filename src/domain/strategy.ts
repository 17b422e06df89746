import { must } from "#lib/assert.ts";
import { parseDuration } from "./duration.ts";
import { editionOf, type Edition } from "./edition.ts";
import { isJsonObject, texts, type Json, type JsonObject } from "./json.ts";
import type { LocalText } from "./language.ts";
import { limits } from "./limits.ts";

/** docs/strategies.md#fields has the types. */
export const FIELD_TYPES = [
  "text",
  "email",
  "url",
  "password",
  "textarea",
  "select",
  "checkbox",
  "totp_secret",
  "headers",
  "file",
] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

/** docs/strategies.md#fields: `secret` is true by default for these. */
const SECRET_TYPES: ReadonlySet<unknown> = new Set<FieldType>(["password", "totp_secret", "headers", "file"]);

/** Whether a field of a document, valid or not, is secret. */
export function isSecretField({ type, secret }: JsonObject): boolean {
  return typeof secret === "boolean" ? secret : SECRET_TYPES.has(type);
}

/** One choice of a `select`. */
export interface FieldOption {
  readonly value: string;
  readonly label: LocalText;
}

/** One control of the hosted form. */
export interface StrategyField {
  readonly key: string;
  readonly label: LocalText;
  readonly type: FieldType;
  readonly required: boolean;
  readonly pattern: string | null;
  readonly minLength: number | null;
  readonly maxLength: number | null;
  readonly placeholder: LocalText | null;
  readonly help: LocalText | null;
  readonly autocomplete: string | null;
  /** The choices of a `select`; empty for every other type. */
  readonly options: readonly FieldOption[];
  /** Never rendered again, and redacted from everything that a run stores. */
  readonly secret: boolean;
}

export interface Strategy {
  readonly id: string;
  readonly account: string;
  readonly name: LocalText;
  readonly description: LocalText | null;
  /** The target's logo, as a `data:` URI; null: its first letter is shown. */
  readonly logoUrl: string | null;
  /** Canonical origins, the only ones that may ever receive the credential. */
  readonly hosts: readonly string[];
  readonly fields: readonly StrategyField[];
  /** `{type, …}`: the keys of its login type, as written. */
  readonly login: JsonObject & { readonly type: string };
  /** How long a logged-in session is cached (sealed); 0 = never. */
  readonly cacheMs: number;
  /** Rejected logins in a row after which the credential is locked for a while; null = never. */
  readonly lockout: { readonly after: number; readonly coolDownMs: number } | null;
  /** Whether a submitted login is tried before its session is completed. */
  readonly verify: boolean;
  /** Runs at once per credential; null = unlimited. */
  readonly concurrency: number | null;
  readonly retired: boolean;
  readonly edition: Edition;
}

/** Origins from which the pages of a browser login may load scripts, pictures and data, besides the hosts. */
export const resourcesOf = ({ login }: Pick<Strategy, "login">): readonly string[] =>
  texts(login["resources"]).map((origin) => new URL(origin).origin);

const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);
/** One text, or one per language. */
const local = (value: Json | undefined): LocalText | null =>
  isJsonObject(value) ? (value as Readonly<Record<string, string>>) : text(value);
const number = (value: Json | undefined): number | null => (typeof value === "number" ? value : null);

/** Reads a strategy document that `apply` has checked. */
export function readStrategy(document: JsonObject): Strategy {
  const login = document["login"];
  const { cache, lockout, ...rest } = isJsonObject(login) ? login : { type: "none" };
  const id = must(text(document["strategy"]), "strategy");
  return {
    id,
    account: must(text(document["account"]), "account"),
    name: local(document["name"]) ?? id,
    description: local(document["description"]),
    logoUrl: text(document["logo_url"]),
    hosts: texts(document["hosts"]).map((host) => new URL(host).origin),
    fields: (Array.isArray(document["fields"]) ? document["fields"] : []).map(readField),
    login: { ...rest, type: must(text(rest["type"]), "login type") },
    cacheMs: cache === undefined ? 0 : must(parseDuration(cache), "a checked duration"),
    lockout: readLockout(lockout),
    verify: document["verify"] === true,
    concurrency: number(document["concurrency"]),
    retired: document["retired"] === true,
    edition: editionOf(document),
  };
}

function readLockout(lockout: Json | undefined): Strategy["lockout"] {
  if (lockout === "off") return null;
  const { after, cool_down: coolDown } = isJsonObject(lockout) ? lockout : {};
  return {
    after: number(after) ?? limits.lockout.after,
    coolDownMs:
      coolDown === undefined
        ? limits.lockout.coolDownMs
        : must(parseDuration(coolDown), "a checked duration"),
  };
}

function readField(value: Json): StrategyField {
  const field = isJsonObject(value) ? value : {};
  const key = must(text(field["key"]), "field key");
  const type = must(text(field["type"]), "field type") as FieldType;
  return {
    key,
    label: local(field["label"]) ?? key,
    type,
    required: field["required"] !== false,
    pattern: text(field["pattern"]),
    minLength: number(field["min_length"]),
    maxLength: number(field["max_length"]),
    placeholder: local(field["placeholder"]),
    help: local(field["help"]),
    autocomplete: text(field["autocomplete"]),
    options: (Array.isArray(field["options"]) ? field["options"] : []).map(readOption),
    secret: isSecretField(field),
  };
}

/** A string, or `{ value, label }`. */
function readOption(option: Json): FieldOption {
  const value = must(text(isJsonObject(option) ? option["value"] : option), "an option's value");
  return { value, label: (isJsonObject(option) ? local(option["label"]) : null) ?? value };
}
