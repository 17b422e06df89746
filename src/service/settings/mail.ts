import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseDuration } from "#domain/duration.ts";
import type { MailSettings } from "#outbound/mailer.ts";
import type { Secret } from "#lib/secret.ts";
import { readSecret, type Checked, type Read, type Setting } from "./read-value.ts";

/** The mailer's settings, and the password of its user; null: it signs in without one. */
export type MailConfig = MailSettings & { readonly password: Secret | null };

export const MAIL_SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_SMTP_URL",
    type: "URL",
    default: "unset: no mail",
    description:
      "Server that sends mail to operators: smtps://user@host:465 (TLS), or smtp://user@host:587 (STARTTLS, required except on loopback); docs/operate.md#mail.",
  },
  {
    name: "LATCHKEY_SMTP_PASSWORD",
    type: "secret",
    default: "from the file",
    description: "The password of that URL's user.",
    isSecret: true,
  },
  {
    name: "LATCHKEY_SMTP_PASSWORD_FILE",
    type: "file",
    default: "unset",
    description: "File with that password.",
  },
  {
    name: "LATCHKEY_SMTP_CA_FILE",
    type: "file",
    default: "unset: the system's authorities",
    description: "Certificates of the authorities that the server's certificate may be of, as PEM.",
  },
  {
    name: "LATCHKEY_MAIL_FROM",
    type: "email address",
    default: "unset",
    description: "Sender of mail to operators.",
  },
  {
    name: "LATCHKEY_MAIL_TO",
    type: "list of email addresses",
    default: "unset",
    description: "Who gets mail about what needs a person, in any account; separated by commas.",
  },
  {
    name: "LATCHKEY_MAIL_EVERY",
    type: "duration",
    default: "15m",
    description: "Least time between two mails, from 1m to 7d: what happens in between comes in one.",
  },
];

const ADDRESS = /^[^\s@,<>"\p{C}]{1,64}@[^\s@,<>"\p{C}]{1,190}$/u;
const addressOf = (text: string): string | undefined => (ADDRESS.test(text) ? text : undefined);
const DAY_MS = 86_400_000;
const EVERY_MS = { default: 15 * 60_000, min: 60_000, max: 7 * DAY_MS };

/** How mail is sent to operators; null: it is not. Each problem is reported with its remedy. */
export function readMail(read: Read, cwd: string, checked: Checked, problems: string[]): MailConfig | null {
  const url = checked("LATCHKEY_SMTP_URL", readServer, "smtps://user@host:465 or smtp://user@host:587", null);
  const from = checked<string | null>("LATCHKEY_MAIL_FROM", addressOf, "an email address", null);
  const to = checked<readonly string[]>(
    "LATCHKEY_MAIL_TO",
    readAddresses,
    "email addresses, separated by commas",
    [],
  );
  const everyMs = checked(
    "LATCHKEY_MAIL_EVERY",
    readEvery,
    "a duration from 1m to 7d, such as 15m",
    EVERY_MS.default,
  );
  const password = readSecret("LATCHKEY_SMTP_PASSWORD", "the password", { read, cwd, problems });
  const ca = readAuthorities(read("LATCHKEY_SMTP_CA_FILE"), cwd, problems);
  const named = MAIL_SETTINGS.map(({ name }) => name).filter((name) => read(name) !== undefined);
  if (named.length === 0) return null;
  for (const name of ["LATCHKEY_SMTP_URL", "LATCHKEY_MAIL_FROM", "LATCHKEY_MAIL_TO"])
    if (read(name) === undefined)
      problems.push(`${name} is not set, and ${named[0]} is: mail to operators needs both.`);
  if (url === null || from === null || to.length === 0) return null;
  if (url.user !== null && password === null)
    problems.push("LATCHKEY_SMTP_URL has a user: set LATCHKEY_SMTP_PASSWORD_FILE, or remove the user.");
  return { ...url, password, ca, from, to, everyMs };
}

function readServer(text: string): Pick<MailSettings, "host" | "port" | "isTls" | "user"> | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text);
  const isTls = protocol === "smtps:";
  if ((!isTls && protocol !== "smtp:") || hostname === "" || password !== "") return undefined;
  if (!["", "/"].includes(pathname) || search !== "" || hash !== "") return undefined;
  return {
    host: hostname,
    port: port === "" ? (isTls ? 465 : 587) : Number(port),
    isTls,
    user: username === "" ? null : decodeURIComponent(username),
  };
}

function readAddresses(text: string): readonly string[] | undefined {
  const addresses = text.split(",").map((each) => each.trim());
  return addresses.every((each) => addressOf(each) !== undefined) ? addresses : undefined;
}

function readEvery(text: string): number | undefined {
  const ms = parseDuration(text);
  return ms === undefined || ms < EVERY_MS.min || ms > EVERY_MS.max ? undefined : ms;
}

function readAuthorities(name: string | undefined, cwd: string, problems: string[]): string | null {
  if (name === undefined) return null;
  const file = resolve(cwd, name);
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    problems.push(
      `LATCHKEY_SMTP_CA_FILE: ${file} can't be read (${code}). Name a readable file with certificates as PEM.`,
    );
    return null;
  }
}
