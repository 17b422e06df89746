import type { Database } from "#db/connection/pool.ts";
import { findDeleted, readGenuine, signRow, type RowMark } from "#db/signing/signed-rows.ts";
import { signedColumns, type SignedRow } from "#db/signing/signed-tables.ts";

/** `refused`: the row was not written by this installation, or is gone. It counts as `on`. */
export type TwoPersonRule = "on" | "off" | "refused";

interface RuleRow extends SignedRow {
  readonly accountId: string;
  readonly isOn: boolean;
}

/** By account id; of an account that never had the rule: `off`. */
export async function readTwoPersonRules(
  db: Database,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, TwoPersonRule>> {
  const rules = new Map<string, TwoPersonRule>(accountIds.map((id) => [id, "off"]));
  const { genuine, refused } = await readGenuine(
    db,
    async () =>
      await db.query<RuleRow>(
        `select ${signedColumns("two_person_rule")} from two_person_rule where account_id = any ($1)`,
        [accountIds],
      ),
    (row) => [{ kind: "two_person_rule", row }],
  );
  for (const { accountId, isOn } of genuine) if (isOn) rules.set(accountId, "on");
  const found = new Set([...genuine.map(({ accountId }) => accountId), ...refused.map(({ id }) => id)]);
  const deleted = await findDeleted(
    db,
    "two_person_rule",
    accountIds.filter((id) => !found.has(id)),
  );
  for (const { id } of [...refused, ...deleted]) rules.set(id, "refused");
  return rules;
}

/** Of one account: whether its changes need two admins. */
export async function isTwoPerson(db: Database, accountId: string): Promise<boolean> {
  return (await readTwoPersonRules(db, [accountId])).get(accountId) !== "off";
}

/** Returns the part of the audit entry that refers to the row. */
export async function saveTwoPersonRule(
  tx: Database,
  accountId: string,
  isOn: boolean,
): Promise<RowMark["audited"]> {
  const { serial, mac, audited } = await signRow(tx, "two_person_rule", { accountId, isOn });
  await tx.query(
    `insert into two_person_rule (account_id, is_on, row_serial, row_mac) values ($1, $2, $3, $4)
     on conflict (account_id) do update set is_on = excluded.is_on, row_serial = excluded.row_serial, row_mac = excluded.row_mac`,
    [accountId, isOn, serial, mac],
  );
  return audited;
}
