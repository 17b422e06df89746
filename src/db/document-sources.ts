import type { DocumentKind } from "./config-documents.ts";
import type { Database } from "./connection/pool.ts";

/** A document's current version; `name`: a strategy's id, or a Blueprint's key. */
interface Named {
  readonly kind: DocumentKind;
  readonly accountId: string;
  readonly name: string;
}

const CURRENT = {
  strategy: "select id, current_version from strategy where account_id = $1 and id = $2",
  blueprint: "select id, current_version from blueprint where account_id = $1 and key = $2",
} as const;

/** Stores the text that the current version was written as; null removes it. */
export async function saveSource(
  tx: Database,
  { kind, accountId, name }: Named,
  text: string | null,
): Promise<void> {
  if (text === null) {
    await tx.query(
      `delete from document_source using (${CURRENT[kind]}) found
       where kind = $3 and account_id = $1 and document_id = found.id and version = found.current_version`,
      [accountId, name, kind],
    );
    return;
  }
  await tx.query(
    `insert into document_source (kind, account_id, document_id, version, text)
     select $3, $1, found.id, found.current_version, $4 from (${CURRENT[kind]}) found
     on conflict (account_id, kind, document_id, version) do update set text = excluded.text
     where document_source.text <> excluded.text`,
    [accountId, name, kind, text],
  );
}

/** The text of a version; null: it was written without one. */
export async function findSource(
  db: Database,
  { kind, accountId, name }: Named,
  version: number,
): Promise<string | null> {
  const rows = await db.query<{ text: string }>(
    `select text from document_source, (${CURRENT[kind]}) found
     where kind = $3 and account_id = $1 and document_id = found.id and version = $4`,
    [accountId, name, kind, version],
  );
  return rows[0]?.text ?? null;
}

/** The texts of all current versions, by account. */
export async function listSources(
  db: Database,
): Promise<readonly (Omit<Named, "accountId"> & { readonly account: string; readonly text: string })[]> {
  return await db.query(
    `select source.kind, account.slug as account, found.name, source.text
     from document_source source join account on account.id = source.account_id
       join (select 'strategy' as kind, account_id, id, id as name, current_version from strategy
         union all select 'blueprint', account_id, id, key, current_version from blueprint) found
         on found.kind = source.kind and found.account_id = source.account_id and found.id = source.document_id
           and found.current_version = source.version`,
  );
}
