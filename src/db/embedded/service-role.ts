import { randomBytes } from "node:crypto";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { failpoint } from "#lib/failpoint.ts";
import type { DataFolder } from "./data-folder.ts";
import { readIfThere, writePrivate } from "./data-folder.ts";
import type { Address } from "./first-connection.ts";
import { makeServiceRole, takesPassword } from "./first-connection.ts";

/** As whom the service connects. It owns nothing; what it may do is granted after the migrations (db/connection/grants.ts). */
const serviceRoleName = "latchkey_app";
const passwordName = "postgres-app-password";

/**
 * The service's role and its password, made where one of them is missing: in a new cluster, in one of a time when the service
 * connected as the superuser, and where a start was cut off between the two. Only under the folder's lock.
 */
export async function ensureServiceRole(
  folder: DataFolder,
  owner: Address,
  database: string,
): Promise<Address> {
  const kept = readIfThere(folder, passwordName) || null;
  const password = kept ?? storeNewPassword(folder);
  await failpoint("database.after_password");
  const address = { ...owner, user: serviceRoleName, password };
  if (kept === null || !(await takesPassword(address, database)))
    await makeServiceRole(owner, serviceRoleName, password, database);
  await failpoint("database.after_role");
  return address;
}

/** Whole or not at all: half a password would be taken for one. The owner's, which must not get lost, is another file. */
function storeNewPassword(folder: DataFolder): string {
  const password = randomBytes(32).toString("base64url");
  const path = join(folder.path, passwordName);
  writePrivate(folder, `${path}.new`, password);
  renameSync(`${path}.new`, path);
  return password;
}
