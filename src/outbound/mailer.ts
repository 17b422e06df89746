import { createTransport } from "nodemailer";
import { ExplainedError } from "#lib/explained-error.ts";

/** The server that mail is handed to, and who gets it. */
export interface MailSettings {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte. Otherwise STARTTLS is required, except on loopback. */
  readonly isTls: boolean;
  /** Null: the server wants no sign-in. */
  readonly user: string | null;
  /** PEM; null: the system's authorities. */
  readonly ca: string | null;
  readonly from: string;
  readonly to: readonly string[];
  /** The least time between two mails. */
  readonly everyMs: number;
}

export interface Mailer {
  readonly everyMs: number;
  /** Plain text. Throws MailError. */
  send(message: { readonly subject: string; readonly text: string }): Promise<void>;
}

/** The mail was not handed over. The message names the place and the kind of failure, and has nothing of what was sent. */
export class MailError extends ExplainedError {}

const TIMEOUT_MS = 15_000;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/;

/**
 * Hands mail to the operator's own server. Its address is a setting and not an author's, so it may be private, as that of the database; no
 * Blueprint reaches it.
 */
export function openMailer(settings: MailSettings, password: string | null): Mailer {
  const { host, port, isTls, user, ca, from, to, everyMs } = settings;
  const transport = createTransport({
    host,
    port,
    secure: isTls,
    requireTLS: !isTls && !LOOPBACK.test(host),
    ignoreTLS: false,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    ...(ca !== null && { tls: { ca } }),
    ...(user !== null && { auth: { user, pass: password ?? "" } }),
  });
  return {
    everyMs,
    send: async ({ subject, text }) => {
      try {
        await transport.sendMail({
          from,
          to: [...to],
          subject,
          text,
          disableFileAccess: true,
          disableUrlAccess: true,
        });
      } catch (error) {
        throw new MailError(`${host}:${port} did not take the mail (${kindOf(error)})`);
      }
    },
  };
}

/** The library's code and the server's; its words may quote what was sent. */
function kindOf(error: unknown): string {
  const { code, responseCode } = error as { readonly code?: unknown; readonly responseCode?: unknown };
  const kinds = [code, responseCode].filter((each) => typeof each === "string" || typeof each === "number");
  return kinds.length === 0 ? "no reason given" : kinds.join(" ");
}
