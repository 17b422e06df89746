import { timingSafeEqual } from "node:crypto";
import { openHmac } from "./hmac.ts";

/** What a column that decides may hold, as the driver gives it. */
export type RowValue = string | number | boolean | null | Uint8Array | readonly string[];

/** A row of the database with what it decides. */
export interface DecidingRow {
  /** What rows of one kind say, no row of another kind can say. */
  readonly kind: string;
  readonly key: readonly (string | number)[];
  /** A later row with the same key has a higher one. */
  readonly serial: number;
  /** In the order of the kind's columns. */
  readonly values: readonly RowValue[];
}

/** The key of deciding rows: only processes with the signing key make rows that verify. */
export interface RowKeys {
  /** HMAC-SHA256, 32 bytes. */
  mac(row: DecidingRow): Buffer;
  /** In constant time. */
  isGenuine(row: DecidingRow, mac: Uint8Array): boolean;
}

export function openRowKeys(key: Buffer): RowKeys {
  const hmac = openHmac(key);
  const mac = (row: DecidingRow): Buffer => hmac(encodeRow(row));
  return {
    mac,
    isGenuine: (row, given) => given.length === MAC_BYTES && timingSafeEqual(mac(row), given),
  };
}

const MAC_BYTES = 32;

/** JSON, in which no two rows have the same text: the kind and the lists stand apart, and bytes are no text. */
function encodeRow({ kind, key, serial, values }: DecidingRow): string {
  const told = values.map((value) =>
    value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("base64") } : value,
  );
  return JSON.stringify(["latchkey.row.v1", kind, key, serial, told]);
}
