import { RowRefused, type RowFault } from "#domain/refused-row.ts";
import { must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import type { Log } from "#lib/log.ts";
import type { DecidingRow, RowKeys, RowValue } from "#lib/row-keys.ts";
import { listRowEntries } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { raiseRowAlarm, settleRowAlarms, type RowAlarms } from "./row-alarms.ts";
import { SIGNED_TABLES, type SignedKind, type SignedRow, type SignedTable } from "./signed-tables.ts";

/** Signs and verifies the rows of a database. */
export interface RowGuard extends RowAlarms {
  readonly keys: RowKeys;
  /** The newest serials in the audit log, by the rows' names. */
  readonly floors: Map<string, Floors>;
  /** Cache of verified rows, by name: unchanged rows need no new computation. */
  readonly verified: Map<string, VerifiedRow>;
}

interface VerifiedRow {
  readonly mac: Buffer;
  readonly serial: number;
  readonly values: readonly RowValue[];
}

interface Floors {
  readonly entries: readonly AuditedSerial[];
  atMs: number;
  /** The serial that was looked up; a higher one may have been audited since. */
  readonly serial: number;
}

/** A row in the detail of an audit entry. */
export interface AuditedSerial {
  readonly serial: number;
  /** For a document, whose audit entry also refers to its version. */
  readonly version: number | null;
}

/** Guards by pool: a transaction uses the guard of its database. */
const guards = new WeakMap<object, RowGuard>();

/** Enables reading and writing signed rows in this database. `log` receives the alarms. */
export function guardRows(
  db: Database,
  { rows: keys, audit }: { readonly rows: RowKeys; readonly audit: AuditKeys },
  log: Log | null,
): void {
  guards.set(db.pool, {
    db,
    keys,
    audit,
    log,
    told: new Set(),
    telling: new Set(),
    floors: new Map(),
    verified: new Map(),
  });
}

/** Waits until all alarms are recorded. */
export async function settleRows(db: Database): Promise<void> {
  const guard = guards.get(db.pool);
  if (guard) await settleRowAlarms(guard);
}

/** The row verifies again or is gone: a later fault raises a new alarm. */
export function forgetAlarm(
  db: Database,
  { kind, id, fault }: { readonly kind: string; readonly id: string; readonly fault: RowFault },
): void {
  guards.get(db.pool)?.told.delete(`${kind}/${id}/${fault}`);
}

/** Discards cached serials. */
export function forgetFloors(db: Database): void {
  guardOf(db).floors.clear();
}

export function guardOf(db: Database): RowGuard {
  const guard = guards.get(db.pool);
  if (guard) return guard;
  throw new Error(
    "Signed rows can't be verified or written without the signing key. Give this process the key of the installation " +
      "(LATCHKEY_SIGNING_KEY_FILE, or LATCHKEY_SIGNING_KEY).",
  );
}

/** The columns `row_serial` and `row_mac` of a row. */
export interface RowMark {
  readonly serial: number;
  readonly mac: Buffer;
  /** For the detail of the audit entry of the change, which is written in the same transaction. */
  readonly audited: { readonly row: string; readonly serial: number };
}

/** Signs a row's new content under a new serial. `row` has the names of the kind's `key` and `decides`. */
export async function signRow(
  tx: Database,
  kind: SignedKind,
  row: Readonly<Record<string, unknown>>,
): Promise<RowMark> {
  const { keys } = guardOf(tx);
  const rows = await tx.query<{ serial: number }>(`select nextval('row_serial') as serial`);
  const { serial } = must(rows[0], "a serial");
  const mac = keys.mac(encode(kind, row, serial));
  return { serial, mac, audited: { row: `${kind}/${idOf(kind, row)}`, serial } };
}

/** Like signRow, with a serial above all in the audit log: a restored sequence may be behind. */
export async function signAbove(tx: Database, kind: SignedKind, row: SignedRow): Promise<RowMark> {
  const floor = floorOf(guardOf(tx), kind, row);
  await tx.query(
    `select nextval('row_serial') from generate_series(1, greatest(0, $1 - (select last_value from row_serial)))`,
    [floor],
  );
  return await signRow(tx, kind, row as Readonly<Record<string, unknown>>);
}

export interface Signed {
  readonly kind: SignedKind;
  readonly row: SignedRow;
}

export interface ReadRows<Row> {
  readonly genuine: readonly Row[];
  readonly refused: readonly RowRefused[];
  /** The unverified content of those, in the same order. Must not be relied on. */
  readonly refusedRows: readonly Row[];
}

/**
 * Reads and verifies signed rows: the only way to use them. `signedOf` returns the signed rows that a result consists of; it is genuine
 * if all of them are. Each that is not raises an alarm. `read` may be called twice.
 */
export async function readGenuine<Row>(
  db: Database,
  read: () => Promise<readonly Row[]>,
  signedOf: (row: Row) => readonly Signed[],
): Promise<ReadRows<Row>> {
  let rows = await read();
  if (rows.length === 0) return { genuine: [], refused: [], refusedRows: [] };
  const guard = guardOf(db);
  let faults = await findFaults(guard, db, rows.map(signedOf));
  // A newer row may have been committed, with its audit entry, after this one was read.
  if (faults.some((refused) => refused?.fault === "outdated")) {
    rows = await read();
    faults = await findFaults(guard, db, rows.map(signedOf));
  }
  const refused = faults.filter((each) => each !== null);
  for (const each of refused) raiseRowAlarm(guard, each);
  return {
    genuine: refused.length === 0 ? rows : rows.filter((_, at) => faults[at] === null),
    refused,
    refusedRows: rows.filter((_, at) => faults[at] !== null),
  };
}

/** For at most one row. Throws RowRefused. */
export async function readOneGenuine<Row>(
  db: Database,
  read: () => Promise<readonly Row[]>,
  signedOf: (row: Row) => readonly Signed[],
): Promise<Row | undefined> {
  const { genuine, refused } = await readGenuine(db, read, signedOf);
  if (refused[0]) throw refused[0];
  return genuine[0];
}

/** Of ids without a row, those that are in the audit log although such rows are never deleted. Each raises an alarm. */
export async function findDeleted(
  db: Database,
  kind: SignedKind,
  ids: readonly string[],
): Promise<readonly RowRefused[]> {
  if (ids.length === 0) return [];
  const guard = guardOf(db);
  const entries = await listRowEntries(
    db,
    guard.audit,
    ids.map((id) => `${kind}/${id}`),
  );
  const known = new Set(entries.map(({ name }) => name));
  const deleted = ids
    .filter((id) => known.has(`${kind}/${id}`))
    .map((id) => new RowRefused(kind, id, "deleted"));
  for (const each of deleted) raiseRowAlarm(guard, each);
  return deleted;
}

/** The first fault of each group of signed rows; null: all genuine and current. */
async function findFaults(
  guard: RowGuard,
  db: Database,
  groups: readonly (readonly Signed[])[],
): Promise<readonly (RowRefused | null)[]> {
  await readFloors(guard, db, groups.flat());
  return groups.map((group) => {
    for (const { kind, row } of group) {
      const fault = faultOf(guard, kind, row);
      if (fault !== null) return new RowRefused(kind, idOf(kind, row), fault);
    }
    return null;
  });
}

function faultOf(guard: RowGuard, kind: SignedKind, row: SignedRow): RowFault | null {
  const { rowMac, rowSerial } = row;
  if (rowMac === null || rowSerial === null) return "unsigned";
  if (!isGenuine(guard, encode(kind, row, rowSerial), rowMac)) return "forged";
  return rowSerial < floorOf(guard, kind, row) ? "outdated" : null;
}

const VERIFIED_MAX = 10_000;

/** Compares with a row that was verified before, or else verifies the MAC. Documents are read only once and not cached here. */
function isGenuine({ keys, verified }: RowGuard, row: DecidingRow, mac: Buffer): boolean {
  const { kind, key, serial, values } = row;
  const name = `${kind}/${key.join("/")}`;
  const known = verified.get(name);
  if (
    known?.serial === serial &&
    known.mac.equals(mac) &&
    known.values.every((value, at) => value === values[at])
  )
    return true;
  if (!keys.isGenuine(row, mac)) return false;
  if ((SIGNED_TABLES[kind as SignedKind] as SignedTable).versionOf !== undefined) return true;
  if (verified.size >= VERIFIED_MAX) verified.clear();
  verified.set(name, { mac, serial, values });
  return true;
}

/** How long serials from the audit log are cached. A restored old row is accepted for at most this long. */
const FRESH_MS = 1_000;
const FLOORS_MAX = 10_000;

/** Reads the audit log's records of rows, unless they were read just now, in one statement for all rows. */
async function readFloors(guard: RowGuard, db: Database, signed: readonly Signed[]): Promise<void> {
  const nowMs = db.clock.now();
  const asked = new Map<string, number>();
  for (const { kind, row } of signed) {
    const serial = row.rowSerial ?? 0;
    for (const name of namesOf(kind, row)) {
      const known = guard.floors.get(name);
      if (known && nowMs - known.atMs < FRESH_MS && serial <= known.serial) continue;
      // One of several concurrent callers reads; the others use the cached serials.
      if (known && serial <= known.serial) known.atMs = nowMs;
      asked.set(name, Math.max(serial, known?.serial ?? 0, asked.get(name) ?? 0));
    }
  }
  if (asked.size === 0) return;
  const found = new Map<string, AuditedSerial[]>([...asked.keys()].map((name) => [name, []]));
  try {
    for (const { name, ...entry } of await listRowEntries(db, guard.audit, [...asked.keys()]))
      found.get(name)?.push(entry);
  } catch (error) {
    for (const name of asked.keys()) guard.floors.delete(name);
    throw error;
  }
  for (const [name, entries] of found) {
    guard.floors.delete(name);
    if (guard.floors.size >= FLOORS_MAX)
      guard.floors.delete(must(guard.floors.keys().next().value, "a name"));
    guard.floors.set(name, { entries, atMs: nowMs, serial: asked.get(name) ?? 0 });
  }
}

/** The newest audited serial of a row; 0: none, so the row must be as first signed. */
function floorOf(guard: RowGuard, kind: SignedKind, row: SignedRow): number {
  const [own, document] = namesOf(kind, row).map((name) => guard.floors.get(name)?.entries ?? []);
  const version = (row as { readonly version?: number }).version;
  const ofVersion = document?.filter((entry) => entry.version === version) ?? [];
  return Math.max(0, ...[...(own ?? []), ...ofVersion].map(({ serial }) => serial));
}

/** How audit entries refer to a row. The entry of a new version refers to the document, and has the version in its detail. */
function namesOf(kind: SignedKind, row: object): readonly string[] {
  const { versionOf, isUnaudited }: SignedTable = SIGNED_TABLES[kind];
  if (isUnaudited) return [];
  const own = `${kind}/${idOf(kind, row)}`;
  if (versionOf === undefined) return [own];
  return [own, `${versionOf}/${keyOf(kind, row).slice(0, -1).join("/")}`];
}

const idOf = (kind: SignedKind, row: object): string => keyOf(kind, row).join("/");

function keyOf(kind: SignedKind, row: object): readonly (string | number)[] {
  const { key }: SignedTable = SIGNED_TABLES[kind];
  return Object.keys(key).map((name) => (row as Record<string, string | number>)[name] ?? "");
}

function encode(kind: SignedKind, row: object, serial: number): DecidingRow {
  const { decides, addedLater }: SignedTable = SIGNED_TABLES[kind];
  const values = Object.keys(decides).flatMap((name): readonly RowValue[] => {
    const value = (row as Record<string, RowValue | undefined>)[name];
    if (value === undefined) throw new Error(`Invariant violated: ${kind} was read without ${name}`);
    if (name === addedLater && value === null) return [];
    return [value];
  });
  return { kind, key: keyOf(kind, row), serial, values };
}
