import assert from "node:assert/strict";
import { whyNoDebian } from "../debian-packages.ts";
import { blueprint, type Bench, type EndedRun } from "../documents/bench.ts";

/** Why no application can be fetched here; false: they can. */
export const skip = whyNoDebian() ?? false;

export const USER = "dana";
export const PASSWORD = "s3cret ä€";

/** A strategy of a user name and a password. */
export const strategy = (id: string, url: string, login: string): string => `strategy: strat_${id}
account: acme
hosts: ["${url}"]
fields: [{ key: user, type: text }, { key: pass, type: password }]
login: ${login}`;

/** A Blueprint of one slot, which gives the records of its node `it`. */
export const connected = (key: string, id: string, nodes: string): string =>
  blueprint(
    key,
    `${nodes}\n- { id: out, type: output, refKey: out, from: it }`,
    `credentials: { app: { strategy: strat_${id} } }`,
  );

/** Records of the trigger. */
export const ITEMS = `- { id: given, type: input, refKey: items, accepts: json, required: true }
- { id: rows, type: parse, from: given, format: json }`;

/** Runs Blueprints of one credential, after one with a wrong password has ended in its login, with the target's own no. */
export async function connectApplication(
  bench: Bench,
  id: string,
  wrong: RegExp,
  pass = PASSWORD,
): Promise<(key: string, items?: readonly object[]) => Promise<EndedRun>> {
  const values = { user: USER, pass };
  const credential = await bench.connect(`strat_${id}`, values);
  const mistaken = await bench.connect(`strat_${id}`, { ...values, pass: "wrong" });
  const refused = await bench.run(`${id}-list`, { credential_id: mistaken });
  assert.match(refused.detail ?? "", wrong);
  return async (key, items) =>
    await bench.run(key, { credential_id: credential, ...(items !== undefined && { items }) });
}
