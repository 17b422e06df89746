import { randomBytes } from "node:crypto";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { failpoint } from "#lib/failpoint.ts";
import type { DataFolder } from "./data-folder.ts";
import { readIfExists, writePrivate } from "./data-folder.ts";
import type { Address } from "./first-connection.ts";
import { makeServiceRole, takesPassword } from "./first-connection.ts";

/** The role with which the service connects. It owns nothing; its privileges are granted after the migrations (db/connection/grants.ts). */
const serviceRoleName = "latchkey_app";
const passwordName = "postgres-app-password";

/**
 * Creates the service's role and its password if one of them is missing: in a new cluster, in one from the time when the service
 * connected as the superuser, and after an interrupted start. The folder's lock must be held.
 */
export async function ensureServiceRole(
  folder: DataFolder,
  owner: Address,
  database: string,
): Promise<Address> {
  const kept = readIfExists(folder, passwordName) || null;
  const password = kept ?? storeNewPassword(folder);
  await failpoint("database.after_password");
  const address = { ...owner, user: serviceRoleName, password };
  if (kept === null || !(await takesPassword(address, database)))
    await makeServiceRole(owner, serviceRoleName, password, database);
  await failpoint("database.after_role");
  return address;
}

/**
 * Written atomically, because part of a password would be mistaken for a whole one. The owner's password, which must not get
 * lost, is in another file.
 */
function storeNewPassword(folder: DataFolder): string {
  const password = randomBytes(32).toString("base64url");
  const path = join(folder.path, passwordName);
  writePrivate(folder, `${path}.new`, password);
  renameSync(`${path}.new`, path);
  return password;
}
