import { DOCUMENT_KINDS, type DocumentKind } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { signRow, type RowMark } from "./signed-rows.ts";

/** A published version. */
export interface SavedVersion {
  readonly version: number;
  /** For the detail of the audit entry. */
  readonly audited: RowMark["audited"];
}

export interface NewVersion {
  readonly kind: DocumentKind;
  readonly accountId: string;
  /** A strategy's id, or a Blueprint's key. */
  readonly name: string;
  /** The document's id if it has no version yet. */
  readonly newId: string;
  readonly document: string;
  readonly retired: boolean;
  readonly operatorId: string | null;
}

/** A new immutable version becomes the current one. Runs and sessions keep theirs. */
export async function saveVersion(tx: Database, given: NewVersion): Promise<SavedVersion> {
  const { kind, accountId, name: key, newId, document, retired, operatorId } = given;
  const { name } = DOCUMENT_KINDS[kind];
  const isKeyed = name === "key";
  // Above all existing versions, so that this does not fail if the pointer was moved back by someone else.
  const rows = await tx.query<{ id: string; version: number }>(
    `select found.id, (select coalesce(max(version), 0) + 1 from ${kind}_version
       where account_id = found.account_id and ${kind}_id = found.id) as version
     from ${kind} found where account_id = $1 and ${name} = $2`,
    [accountId, key],
  );
  const { id, version } = rows[0] ?? { id: newId, version: 1 };
  const pointer = await signRow(tx, kind, { id, accountId, key, version, retired });
  await tx.query(
    `insert into ${kind} (account_id, id, current_version, retired, row_serial, row_mac${isKeyed ? ", key" : ""})
     values ($1, $2, $3, $4, $5, $6${isKeyed ? ", $7" : ""})
     on conflict (account_id, id) do update set current_version = excluded.current_version, retired = excluded.retired,
       row_serial = excluded.row_serial, row_mac = excluded.row_mac`,
    [accountId, id, version, retired, pointer.serial, pointer.mac, ...(isKeyed ? [key] : [])],
  );
  const mark = await signRow(tx, `${kind}_version`, { id, version, accountId, document });
  await tx.query(
    `insert into ${kind}_version (account_id, ${kind}_id, version, document, operator_id, row_serial, row_mac)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [accountId, id, version, document, operatorId, mark.serial, mark.mac],
  );
  return { version, audited: pointer.audited };
}
