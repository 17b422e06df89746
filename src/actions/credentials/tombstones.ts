import { diskFailure } from "#blobs/store.ts";
import { credentialExists } from "#db/credentials/credentials.ts";
import type { Database } from "#db/connection/pool.ts";
import { isId } from "#domain/ids.ts";
import { openAppendLog, readLog } from "#lib/append-log.ts";

/**
 * The ids of deleted credentials, in a file outside the database: a restored older dump would bring the credentials back, and
 * `restore-reconcile` deletes them again (docs/decisions/0024).
 *
 * A line is durable before the delete's COMMIT, so every acknowledged delete has its tombstone. If the transaction then fails, a
 * second line withdraws the first; if the process dies in between, the line remains, and a restore deletes a credential whose
 * deletion was requested.
 */
export interface Tombstones {
  /** Per request: it never withdraws another request's line. */
  of(credentialId: string): Tombstone;
}

export interface Tombstone {
  /** Inside the deleting transaction, as its last step. `receipt`: its audit entry. */
  write(accountId: string, receipt: { readonly id: string; readonly occurredAt: string }): Promise<void>;
  /** After a rollback: withdraws the lines, if there are any and the credential still exists. */
  withdraw(db: Database): Promise<void>;
}

export function openTombstones(file: string): Tombstones {
  const log = openAppendLog(file);
  const append = async (lines: readonly object[]): Promise<void> => {
    await log.append(lines.map((line) => JSON.stringify(line))).catch((error: unknown) => {
      throw diskFailure("data", file, error);
    });
  };
  return {
    of: (credentialId) => {
      // Of each transaction that was tried.
      const written: string[] = [];
      return {
        write: async (account, { id: entry, occurredAt: at }) => {
          // Set first: a partly written line counts as written.
          written.push(entry);
          await append([{ v: 1, deleted: credentialId, account, at, entry }]);
        },
        withdraw: async (db) => {
          if (written.length === 0 || !(await credentialExists(db, credentialId))) return;
          await append(written.map((entry) => ({ v: 1, undone: credentialId, entry })));
        },
      };
    },
  };
}

/**
 * Reads the ids of deleted credentials from tombstone files and `latchkey audit export`. A withdrawal names the withdrawn line by its
 * audit entry, because a second request may have deleted the credential in the meantime. It applies only within its own file: another
 * machine may have completed the delete.
 */
export async function readTombstones(
  files: readonly string[],
): Promise<{ readonly credentialIds: readonly string[]; readonly unreadable: number }> {
  const deleted = new Set<string>();
  let unreadableTotal = 0;
  for (const file of files) {
    // By credential, the audit entries of the requests that deleted it.
    const own = new Map<string, Set<unknown>>();
    const add = (id: string, entry: unknown): void => {
      own.set(id, (own.get(id) ?? new Set()).add(entry));
    };
    const { lines, unreadable } = await readLog(file);
    unreadableTotal += unreadable;
    for (const { value } of lines) {
      if (isCredentialId(value["deleted"])) add(value["deleted"], value["entry"]);
      if (isCredentialId(value["undone"])) {
        // Earlier releases did not name it.
        if (value["entry"] === undefined) own.delete(value["undone"]);
        else own.get(value["undone"])?.delete(value["entry"]);
      }
      if (value["action"] === "credential.delete" && isCredentialId(value["subject_id"]))
        add(value["subject_id"], value["id"]);
    }
    for (const [id, entries] of own) if (entries.size > 0) deleted.add(id);
  }
  return { credentialIds: [...deleted], unreadable: unreadableTotal };
}

function isCredentialId(value: unknown): value is string {
  return typeof value === "string" && isId("credential", value);
}
