import { hash } from "node:crypto";
import { saveFirstBrowser, type StoredSession } from "#db/credentials/credential-sessions.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Needs } from "#actions/services.ts";

const BROWSER = /^[0-9A-Za-z]{43}$/;

/** Of this session alone, so that the rows of two sessions do not tell that one browser has opened both. */
const fingerprintOf = ({ id }: Pick<StoredSession, "id">, browser: string): Buffer =>
  hash("sha256", `${id}/${browser}`, "buffer");

/**
 * Notes which browser has first opened a session's link: the one that calls itself `browser`, or, when it has no name yet, one with the
 * name that this gives. Null: another one was first just now.
 */
export async function noteOpening(
  { db }: Needs<"db">,
  session: StoredSession,
  browser: string | null,
): Promise<string | null> {
  const name = browser !== null && BROWSER.test(browser) ? browser : randomBase62(43);
  return (await saveFirstBrowser(db, session, fingerprintOf(session, name))) ? name : null;
}

/** Whether the link was first opened in another browser than this; by nobody so far: no. */
export function isOpenedElsewhere(session: StoredSession, browser: string | null): boolean {
  const { firstBrowser } = session;
  return firstBrowser !== null && (browser === null || !fingerprintOf(session, browser).equals(firstBrowser));
}
