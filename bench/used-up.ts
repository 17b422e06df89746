/** Requests that use up what they name, for `--against`: each load makes its own credentials and sessions first. */
import { newId } from "#lib/new-id.ts";
import { openCaller } from "../test/caller.ts";
import type { RequestKind, WireRequest } from "./scenarios.ts";
import type { Stage } from "./stage.ts";

/** Of each kind in one load: more than a service answers in a second. */
const DELETES = 4_000;
const SUBMITS = 1_500;
const AT_ONCE = 64;

/** Credentials as rows: what is sealed in them is never opened here. */
async function deletes({ installation, apiKey }: Stage): Promise<readonly WireRequest[]> {
  const ids = Array.from({ length: DELETES }, () => newId("cred_"));
  await installation.database.db.query(
    `insert into credential (id, account_id, strategy_id, session_id, sealed, kid)
     select id, account.id, 'strat_portal', 'sess_of_' || id, '\\x00', (select kid from vault_key limit 1)
     from unnest($1::text[]) id, account`,
    [ids],
  );
  return ids.map((id) => ({
    method: "DELETE",
    path: `/api/v1/credentials/${id}`,
    headers: { Authorization: `Bearer ${apiKey}` },
    body: "",
  }));
}

/** Sessions whose form was opened, as a browser without script sends it. */
async function submits({ apiKey }: Stage, url: string): Promise<readonly WireRequest[]> {
  const caller = openCaller(url, apiKey);
  const one = async (): Promise<WireRequest> => {
    const { body: session } = await caller.post("/credential-sessions", { strategy_id: "strat_portal" });
    const path = new URL(session.hosted_url).pathname;
    const page = await (await fetch(url + path)).text();
    const form = new URLSearchParams({ token: "t" });
    for (const [input] of page.matchAll(/<input\b[^>]*type="hidden"[^>]*>/g))
      form.set(/name="([^"]*)"/.exec(input)?.[1] ?? "", /value="([^"]*)"/.exec(input)?.[1] ?? "");
    const headers = { "Content-Type": "application/x-www-form-urlencoded", Origin: url };
    return { method: "POST", path, headers, body: form.toString() };
  };
  const made: WireRequest[] = [];
  while (made.length < SUBMITS) made.push(...(await Promise.all(Array.from({ length: AT_ONCE }, one))));
  return made;
}

export const USED_UP: readonly RequestKind[] = [
  { id: "submit", title: "submit of the hosted form", status: 200, requests: submits },
  { id: "delete", title: "delete of a credential", status: 204, requests: deletes },
];
