import { listLiveAccountIds } from "#db/accounts.ts";
import {
  claimMail,
  listenForMail,
  listToldEvents,
  noteMailFailed,
  noteMailSent,
  type ToldEvents,
} from "#db/operators/operator-mail.ts";
import { countWaitingForPeople } from "#db/operators/operator-overview.ts";
import type { Database } from "#db/connection/pool.ts";
import { describeDigest } from "#domain/mail-digest.ts";
import type { Log } from "#lib/log.ts";
import { MailError, type Mailer } from "#outbound/mailer.ts";

export interface MailServices {
  readonly db: Database;
  readonly log: Log;
  /** Null: no mail is sent. */
  readonly mailer: Mailer | null;
  readonly publicUrl: () => string;
}

/** Events are written for so long after the last look of a worker that sends mail. */
const LISTEN_MS = 86_400_000;
/** Events of transactions that began earlier than others and end later have a place before them. */
const SETTLE_MS = 15_000;
const LEASE_MS = 120_000;
const RETRY_MS = 300_000;

/**
 * Mails operators what has come to need a person since the last mail: counts, names of accounts, and links. Of all workers one sends it, at
 * least once: one that is killed in between may send it again.
 */
export async function mailOperators({ db, log, mailer, publicUrl }: MailServices): Promise<void> {
  if (mailer === null) return;
  await listenForMail(db, LISTEN_MS);
  const mail = await claimMail(db, { settleMs: SETTLE_MS, leaseMs: LEASE_MS });
  if (mail === undefined) return;
  const events: readonly ToldEvents[] = await listToldEvents(db, mail);
  const waiting = await countWaitingForPeople(db, await listLiveAccountIds(db), true);
  try {
    await mailer.send(describeDigest({ events, waiting, publicUrl: publicUrl() }));
  } catch (error) {
    if (!(error instanceof MailError)) throw error;
    const isNew = await noteMailFailed(db, error.message.slice(0, 300), Math.min(RETRY_MS, mailer.everyMs));
    if (isNew)
      log.error(
        { alarm: "mail_failed", failure: error.message },
        "mail to operators can't be sent: check LATCHKEY_SMTP_URL and its password. What it would tell is kept, and tried again",
      );
    return;
  }
  await noteMailSent(db, mail, mailer.everyMs);
}
