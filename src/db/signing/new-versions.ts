import { must } from "#lib/assert.ts";
import type { Database } from "#db/connection/pool.ts";
import { signRow, type RowMark } from "./signed-rows.ts";

/** A version that was put in force. */
export interface SavedVersion {
  readonly version: number;
  /** For the detail of the audit entry. */
  readonly audited: RowMark["audited"];
}

/** A new immutable version becomes the one in force. Runs and sessions keep theirs. */
export async function saveStrategyVersion(
  tx: Database,
  strategy: {
    readonly accountId: string;
    readonly id: string;
    readonly document: string;
    readonly retired: boolean;
    readonly operatorId: string | null;
  },
): Promise<SavedVersion> {
  const { accountId, id, document, retired, operatorId } = strategy;
  // Above all that there are: a pointer that somebody has moved back must not make this fail.
  const rows = await tx.query<{ version: number }>(
    `select coalesce(max(version), 0) + 1 as version from strategy_version where account_id = $1 and strategy_id = $2`,
    [accountId, id],
  );
  const { version } = must(rows[0], "the next version");
  const pointer = await signRow(tx, "strategy", { accountId, id, version, retired });
  await tx.query(
    `insert into strategy (account_id, id, current_version, retired, row_serial, row_mac) values ($1, $2, $3, $4, $5, $6)
     on conflict (account_id, id) do update set current_version = excluded.current_version, retired = excluded.retired,
       row_serial = excluded.row_serial, row_mac = excluded.row_mac`,
    [accountId, id, version, retired, pointer.serial, pointer.mac],
  );
  const mark = await signRow(tx, "strategy_version", { accountId, id, version, document });
  await tx.query(
    `insert into strategy_version (account_id, strategy_id, version, document, operator_id, row_serial, row_mac)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [accountId, id, version, document, operatorId, mark.serial, mark.mac],
  );
  return { version, audited: pointer.audited };
}

/** As saveStrategyVersion. */
export async function saveBlueprintVersion(
  tx: Database,
  blueprint: {
    readonly newId: string;
    readonly accountId: string;
    readonly key: string;
    readonly document: string;
    readonly retired: boolean;
    readonly operatorId: string | null;
  },
): Promise<SavedVersion> {
  const { newId, accountId, key, document, retired, operatorId } = blueprint;
  const rows = await tx.query<{ id: string; version: number }>(
    `select found.id, (select coalesce(max(version), 0) + 1 from blueprint_version where blueprint_id = found.id) as version
     from blueprint found where account_id = $1 and key = $2`,
    [accountId, key],
  );
  const { id, version } = rows[0] ?? { id: newId, version: 1 };
  const pointer = await signRow(tx, "blueprint", { id, accountId, key, version, retired });
  await tx.query(
    `insert into blueprint (id, account_id, key, current_version, retired, row_serial, row_mac) values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (id) do update set current_version = excluded.current_version, retired = excluded.retired,
       row_serial = excluded.row_serial, row_mac = excluded.row_mac`,
    [id, accountId, key, version, retired, pointer.serial, pointer.mac],
  );
  const mark = await signRow(tx, "blueprint_version", { id, version, accountId, document });
  await tx.query(
    `insert into blueprint_version (account_id, blueprint_id, version, document, operator_id, row_serial, row_mac)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [accountId, id, version, document, operatorId, mark.serial, mark.mac],
  );
  return { version, audited: pointer.audited };
}
