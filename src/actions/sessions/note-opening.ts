import { hash } from "node:crypto";
import { saveFirstBrowser, type StoredSession } from "#db/credentials/credential-sessions.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Needs } from "#actions/services.ts";

const BROWSER = /^[0-9A-Za-z]{43}$/;

/** A hash for this session alone, so that the rows of two sessions do not show that the same browser opened both. */
const fingerprintOf = ({ id }: Pick<StoredSession, "id">, browser: string): Buffer =>
  hash("sha256", `${id}/${browser}`, "buffer");

/**
 * Records which browser opened a session's link first: the one with the cookie `browser`, or, without a cookie, one with the
 * value that this returns. Null: another browser was first.
 */
export async function noteOpening(
  { db }: Needs<"db">,
  session: StoredSession,
  browser: string | null,
): Promise<string | null> {
  const name = browser !== null && BROWSER.test(browser) ? browser : randomBase62(43);
  return (await saveFirstBrowser(db, session, fingerprintOf(session, name))) ? name : null;
}

/** Whether the link was first opened in another browser. False if nobody has opened it. */
export function isOpenedElsewhere(session: StoredSession, browser: string | null): boolean {
  const { firstBrowser } = session;
  return firstBrowser !== null && (browser === null || !fingerprintOf(session, browser).equals(firstBrowser));
}
