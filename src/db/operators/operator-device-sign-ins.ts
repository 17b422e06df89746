import type { Database } from "#db/connection/pool.ts";

/** A command line that asks to be signed in. Only its device hash can be trusted: the user code must be derived from it. */
export interface DeviceSignIn {
  readonly deviceHash: Buffer;
  readonly name: string;
  readonly address: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** Deletes expired rows first. Returns null if another row has the user code. */
export async function insertDeviceSignIn(
  db: Database,
  device: {
    readonly deviceHash: Uint8Array;
    readonly userCode: string;
    readonly name: string;
    readonly address: string;
    readonly lifetimeMs: number;
  },
): Promise<{ readonly expiresAt: Date } | null> {
  await db.query(`delete from operator_device_sign_in where expires_at <= app_now()`);
  const rows = await db.query<{ expiresAt: Date }>(
    `insert into operator_device_sign_in (device_hash, user_code, name, address, expires_at)
     values ($1, $2, $3, $4, app_now() + $5::bigint * interval '1 ms')
     on conflict do nothing returning expires_at as "expiresAt"`,
    [device.deviceHash, device.userCode, device.name, device.address, device.lifetimeMs],
  );
  return rows[0] ?? null;
}

const IS_OPEN = `expires_at > app_now() and denied_at is null and token_id is null`;

/** Undefined: there is none, it has expired, or somebody has decided. */
export async function findOpenDeviceSignIn(
  db: Database,
  userCode: string,
): Promise<DeviceSignIn | undefined> {
  const rows = await db.query<DeviceSignIn>(
    `select device_hash as "deviceHash", name, address, created_at as "createdAt", expires_at as "expiresAt"
     from operator_device_sign_in where user_code = $1 and ${IS_OPEN}`,
    [userCode],
  );
  return rows[0];
}

/** Locks it until the transaction ends, so that of any number of operators one decides. False: somebody has, or it has expired. */
export async function lockOpenDeviceSignIn(tx: Database, deviceHash: Uint8Array): Promise<boolean> {
  const rows = await tx.query(
    `select 1 from operator_device_sign_in where device_hash = $1 and ${IS_OPEN} for update`,
    [deviceHash],
  );
  return rows.length > 0;
}

/** `tokenId`: the approved token; null: refused. The caller has locked the row. */
export async function decideDeviceSignIn(
  tx: Database,
  deviceHash: Uint8Array,
  tokenId: string | null,
): Promise<void> {
  await tx.query(
    `update operator_device_sign_in set token_id = $2, denied_at = case when $2::text is null then app_now() end
     where device_hash = $1`,
    [deviceHash, tokenId],
  );
}

/** Takes a decision, which is handed out once: of any number of callers, exactly one gets it. Undefined: there is none yet. */
export async function takeDeviceDecision(
  db: Database,
  deviceHash: Uint8Array,
): Promise<{ readonly tokenId: string | null } | undefined> {
  const rows = await db.query<{ tokenId: string | null }>(
    `delete from operator_device_sign_in
     where device_hash = $1 and expires_at > app_now() and (denied_at is not null or token_id is not null)
     returning token_id as "tokenId"`,
    [deviceHash],
  );
  return rows[0];
}

export async function isDeviceSignInOpen(db: Database, deviceHash: Uint8Array): Promise<boolean> {
  const rows = await db.query(`select 1 from operator_device_sign_in where device_hash = $1 and ${IS_OPEN}`, [
    deviceHash,
  ]);
  return rows.length > 0;
}
