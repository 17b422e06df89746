import { timingSafeEqual } from "node:crypto";
import { openHmac } from "./hmac.ts";

/** The value of a signed column, as the driver returns it. */
export type RowValue = string | number | boolean | null | Uint8Array | readonly string[];

/** A signed row with its signed columns. */
export interface DecidingRow {
  /** The kind, so that a signature of one kind is never valid for another. */
  readonly kind: string;
  readonly key: readonly (string | number)[];
  /** Later versions of a row have higher serials. */
  readonly serial: number;
  /** In the order of the kind's columns. */
  readonly values: readonly RowValue[];
}

/** The key for signed rows: only processes with the signing key can write rows that verify. */
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

/** An unambiguous JSON encoding: the kind and the lists are separate, and bytes differ from text. */
function encodeRow({ kind, key, serial, values }: DecidingRow): string {
  const told = values.map((value) =>
    value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("base64") } : value,
  );
  return JSON.stringify(["latchkey.row.v1", kind, key, serial, told]);
}
