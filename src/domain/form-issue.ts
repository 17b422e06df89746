/** The English texts of field problems; the pages have them in other languages, too. */
export const ISSUES = {
  required: "{field} is required.",
  must_tick: "Tick the box to confirm: {field}",
  too_long: "{field} is too long.",
  file_too_large: "{field} is too large: the file can have at most {size} KB.",
  too_short: {
    one: "{field} must have at least {count} character.",
    other: "{field} must have at least {count} characters.",
  },
  over_maximum: {
    one: "{field} must have at most {count} character.",
    other: "{field} must have at most {count} characters.",
  },
  pattern: "{field} does not have the expected form. Please check it.",
  url: "{field} must be a web address like https://www.example.com.",
  email: "{field} must be an email address like name@example.com.",
  choice: "{field} must be one of the choices.",
  not_text:
    "{field} is not a text file. A certificate or a key must be in PEM form, which begins with -----BEGIN; files in PKCS#12 form (.p12, .pfx) or DER form can be converted to it.",
  header_unnamed: "{field}: a header has a value but no name.",
  header_empty: "{field}: a header has a name but no value.",
  header_name: "{field}: a header's name has only letters, digits and hyphens, like X-Api-Key.",
  header_reserved: "{field}: one of the headers is set by the connection itself. Please remove it.",
  header_value: "{field}: a header's value has characters that are not allowed in a header.",
  header_twice: "{field}: a header is given twice.",
  totp_migration:
    "That is a link for moving accounts between phones, which does not contain a single key. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_other_link:
    "That is a link, but not one that begins with otpauth://totp/. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_code:
    "That looks like a one-time code from an authenticator app. Please enter the setup key instead: copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_counter:
    "That key is for counter-based codes, which are not supported. Please use a key for time-based codes.",
  totp_kind:
    "The link must begin with otpauth://totp/. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_twice:
    "The link contains one of its settings twice. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_encoder: "The link is for a special kind of code, which is not supported.",
  totp_algorithm: "The link uses an algorithm other than SHA1, SHA256 and SHA512.",
  totp_digits: "The link is for codes that do not have {min} to {max} digits.",
  totp_period: "The link is for codes that do not change every {min} to {max} seconds.",
  totp_no_key:
    "The link contains no secret key. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_empty: "The secret key is empty. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_letters:
    "A secret key has only the letters A to Z and the digits 2 to 7. This one contains other characters. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_length:
    "The secret key seems to have a character too few or too many. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  totp_short:
    "The secret key is too short to be complete. Copy the key shown beside the QR code, or the whole otpauth:// link.",
  certificate_none:
    "This contains no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----.",
  certificate_broken: "This certificate can't be read. It may be incomplete.",
  certificate_expired: "This certificate has expired.",
  key_other: "This key does not belong to the certificate.",
  key_none: "This contains no private key in PEM form, which begins with -----BEGIN PRIVATE KEY-----.",
  key_locked: "This key is protected by a passphrase, which was not given.",
  key_wrong_passphrase: "The key can't be decrypted with this passphrase.",
  key_broken: "This key can't be read. It may be incomplete.",
} as const satisfies Readonly<Record<string, Sentence>>;

export type IssueCode = keyof typeof ISSUES;

/** A problem of a field. It never contains the value. */
export interface FormIssue {
  readonly code: IssueCode;
  /** Numbers in its text; `count` selects the plural form. */
  readonly numbers?: Readonly<Record<string, number>>;
}

/** A sentence with placeholders like `{field}`, or its plural forms for the number in `{count}` (CLDR's plural categories). */
export type Sentence =
  | string
  | (Readonly<Partial<Record<Exclude<Intl.LDMLPluralRule, "other">, string>>> & { readonly other: string });

export type IssueSentences = Readonly<Record<IssueCode, Sentence>>;

export const issue = (code: IssueCode, numbers?: Readonly<Record<string, number>>): FormIssue =>
  numbers === undefined ? { code } : { code, numbers };

/** The sentence of an issue about the field with this label. */
export function explainIssue(
  { code, numbers = {} }: FormIssue,
  label: string,
  { language, sentences }: { readonly language: string; readonly sentences: IssueSentences } = ENGLISH,
): string {
  const sentence = sentences[code];
  const text =
    typeof sentence === "string"
      ? sentence
      : (sentence[new Intl.PluralRules(language).select(numbers["count"] ?? 0)] ?? sentence.other);
  // A single pass, so that braces in a label are not replaced.
  return text.replace(/\{(\w+)\}/g, (_place, name: string) =>
    name === "field" ? label : String(numbers[name]),
  );
}

const ENGLISH = { language: "en", sentences: ISSUES } as const;
