import { timingSafeEqual } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import { issue, type FormIssue, type IssueCode } from "./form-issue.ts";

const ALGORITHMS = ["SHA1", "SHA256", "SHA512"] as const;
export type TotpAlgorithm = (typeof ALGORITHMS)[number];

/** The key of a one-time-code generator (RFC 6238) with its settings. Secret. */
export interface TotpSecret {
  /** RFC 4648, upper case, without padding. */
  readonly secretBase32: string;
  readonly algorithm: TotpAlgorithm;
  readonly digits: number;
  readonly periodSeconds: number;
}

export type ParsedTotp =
  | { readonly ok: true; readonly secret: TotpSecret }
  | { readonly ok: false; readonly issue: FormIssue };

const DEFAULTS = { algorithm: "SHA1", digits: 6, periodSeconds: 30 } as const;
const DIGITS = { min: 6, max: 8 };
const PERIOD_SECONDS = { min: 15, max: 120 };
/** 80 bits, the minimum that services issue. RFC 4226 requires 128, but end users can't choose. */
const SECRET_BYTES_MIN = 10;

const refuse = (code: IssueCode, numbers?: Readonly<Record<string, number>>): ParsedTotp => ({
  ok: false,
  issue: issue(code, numbers),
});

/**
 * Reads what an end user pastes: the base32 key in any spacing and case, or a whole `otpauth://totp/` link. Stricter than the
 * library, which accepts 20 digits, counter-based keys, the first of two secrets and one-letter keys (docs/decisions/0021): what
 * is accepted here produces the codes that the user's authenticator app shows.
 */
export function parseTotpSecret(text: string): ParsedTotp {
  const trimmed = text.trim();
  if (/^otpauth-migration:/i.test(trimmed)) {
    return refuse("totp_migration");
  }
  if (/^otpauth:/i.test(trimmed)) return parseUri(trimmed);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed)) return refuse("totp_other_link");
  if (/^\d{3}\s?\d{3,5}$/.test(trimmed)) {
    return refuse("totp_code");
  }
  return withKey(trimmed, DEFAULTS);
}

function parseUri(uri: string): ParsedTotp {
  const match = /^otpauth:\/\/([^/?#]*)[^?#]*(?:\?([^#]*))?(?:#.*)?$/is.exec(uri);
  const type = match?.[1]?.toLowerCase();
  if (type === "hotp") return refuse("totp_counter");
  if (type !== "totp") return refuse("totp_kind");
  const params = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(match?.[2] ?? "")) {
    const key = name.toLowerCase();
    // Apps differ in which of two parameters they use.
    if (params.has(key)) return refuse("totp_twice");
    params.set(key, value);
  }
  // Steam's codes consist of letters.
  if (params.has("encoder")) return refuse("totp_encoder");
  const algorithm = readAlgorithm(params.get("algorithm"));
  if (algorithm === undefined) return refuse("totp_algorithm");
  const digits = readWhole(params.get("digits"), DEFAULTS.digits, DIGITS);
  if (digits === undefined) return refuse("totp_digits", DIGITS);
  const periodSeconds = readWhole(params.get("period"), DEFAULTS.periodSeconds, PERIOD_SECONDS);
  if (periodSeconds === undefined) {
    return refuse("totp_period", PERIOD_SECONDS);
  }
  const secret = params.get("secret");
  if (secret === undefined) return refuse("totp_no_key");
  return withKey(secret, { algorithm, digits, periodSeconds });
}

function readAlgorithm(text: string | undefined): TotpAlgorithm | undefined {
  if (text === undefined) return DEFAULTS.algorithm;
  return ALGORITHMS.find((algorithm) => algorithm === text.toUpperCase().replace(/^SHA-/, "SHA"));
}

function readWhole(
  text: string | undefined,
  fallback: number,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  if (text === undefined) return fallback;
  const value = /^\d{1,3}$/.test(text) ? Number(text) : NaN;
  return value >= min && value <= max ? value : undefined;
}

function withKey(text: string, settings: Omit<TotpSecret, "secretBase32">): ParsedTotp {
  // Hyphens of all kinds, because word processors replace them. `=` only at the end: "secret=ABC" is not the key SECRETABC.
  const key = text.replace(/[\s\-\u2010-\u2015]/g, "").replace(/=+$/, "");
  if (key === "") return refuse("totp_empty");
  if (!/^[A-Za-z2-7]+$/.test(key)) {
    return refuse("totp_letters");
  }
  // RFC 4648, 6: no whole number of bytes leaves 1, 3 or 6 characters.
  if ([1, 3, 6].includes(key.length % 8)) return refuse("totp_length");
  if (Math.floor((key.length * 5) / 8) < SECRET_BYTES_MIN) return refuse("totp_short");
  return { ok: true, secret: { secretBase32: key.toUpperCase(), ...settings } };
}

/** The canonical text of a secret, which `parseTotpSecret` reads. The link's label is omitted. */
export function writeTotpSecret(secret: TotpSecret): string {
  const { secretBase32, algorithm, digits, periodSeconds } = secret;
  return `otpauth://totp/Latchkey?secret=${secretBase32}&algorithm=${algorithm}&digits=${digits}&period=${periodSeconds}`;
}

export interface TotpCode {
  readonly code: string;
  /** The number of the time step; a code is sent once per step. */
  readonly step: number;
  /** The time until the next step begins. */
  readonly validForMs: number;
}

/** The code at an instant (milliseconds since 1970). */
export function totpCode(secret: TotpSecret, atMs: number): TotpCode {
  const periodMs = secret.periodSeconds * 1_000;
  const step = Math.floor(atMs / periodMs);
  const code = TOTP.generate({
    secret: Secret.fromBase32(secret.secretBase32),
    algorithm: secret.algorithm,
    digits: secret.digits,
    period: secret.periodSeconds,
    timestamp: atMs,
  });
  return { code, step, validForMs: (step + 1) * periodMs - atMs };
}

const WINDOW_STEPS = 1;

/**
 * The time step of an operator's code, at most one step before or after the current one; undefined when the code is wrong. All
 * steps are compared, and each in constant time.
 */
export function matchTotpCode(secretBase32: string, code: string, atMs: number): number | undefined {
  const secret = { secretBase32, ...DEFAULTS };
  const periodMs = DEFAULTS.periodSeconds * 1_000;
  let found: number | undefined;
  for (let offset = -WINDOW_STEPS; offset <= WINDOW_STEPS; offset++) {
    const candidate = totpCode(secret, atMs + offset * periodMs);
    if (isSameCode(candidate.code, code)) found = candidate.step;
  }
  return found;
}

function isSameCode(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The URI for an operator's authenticator app to scan. */
export function writeOperatorTotpUri(secretBase32: string, email: string): string {
  const label = encodeURIComponent(`Latchkey:${email}`);
  return `otpauth://totp/${label}?secret=${secretBase32}&issuer=Latchkey&algorithm=SHA1&digits=6&period=30`;
}

/** RFC 4648 without padding. */
export function encodeBase32(bytes: Uint8Array): string {
  return new Secret({ buffer: new Uint8Array(bytes).buffer }).base32;
}
