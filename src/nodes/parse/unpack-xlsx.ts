import { crc32, inflateRawSync } from "node:zlib";

const UNPACKED_BYTES_MAX = 100_000_000;
const ENTRIES_MAX = 10_000;
const END_BYTES = 22;
const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;

interface Entry {
  readonly name: Buffer;
  readonly bytes: Buffer;
  readonly crc: number;
}

/**
 * Repacks the XML files of a spreadsheet into an archive without compression. The reader decompresses its input without a limit,
 * so it gets the output of this function, which enforces one, regardless of the sizes that the archive declares.
 */
export function unpackXlsx(file: Uint8Array): { readonly zip: ArrayBuffer } | { readonly problem: string } {
  const zip = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  // Both encrypted spreadsheets and those from before 2007 have this format.
  if (zip.length >= 8 && zip.readUInt32BE(0) === 0xd0cf11e0)
    return { problem: "is encrypted, or an .xls; save it as .xlsx without a password" };
  try {
    return { zip: pack(readEntries(zip)) };
  } catch (error) {
    return { problem: error instanceof Refused ? error.message : "is not a spreadsheet, or is damaged" };
  }
}

class Refused extends Error {}

function readEntries(zip: Buffer): readonly Entry[] {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end === -1 || end + END_BYTES > zip.length || zip.readUInt32LE(end) !== END)
    throw new Refused("is not a spreadsheet, or is damaged");
  const count = zip.readUInt16LE(end + 10);
  if (count > ENTRIES_MAX) throw new Refused(`contains more than ${ENTRIES_MAX} files`);
  const entries: Entry[] = [];
  let left = UNPACKED_BYTES_MAX;
  let at = zip.readUInt32LE(end + 16);
  for (let index = 0; index < count; index += 1) {
    if (zip.readUInt32LE(at) !== ENTRY) throw new Refused("is not a spreadsheet, or is damaged");
    const nameEnd = at + 46 + zip.readUInt16LE(at + 28);
    const name = zip.subarray(at + 46, nameEnd);
    if (/\.(xml|rels)$/i.test(name.toString("latin1"))) {
      const entry = unpack(zip, at, name, left);
      left -= entry.bytes.length;
      entries.push(entry);
    }
    at = nameEnd + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return entries;
}

function unpack(zip: Buffer, at: number, name: Buffer, bytesMax: number): Entry {
  const isEncrypted = (zip.readUInt16LE(at + 8) & 1) === 1;
  if (isEncrypted) throw new Refused("is encrypted; save it without a password");
  const method = zip.readUInt16LE(at + 10);
  const crc = zip.readUInt32LE(at + 16);
  const size = zip.readUInt32LE(at + 20);
  const local = zip.readUInt32LE(at + 42);
  if (zip.readUInt32LE(local) !== LOCAL) throw new Refused("is not a spreadsheet, or is damaged");
  const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  const packed = zip.subarray(start, start + size);
  const bytes = method === 0 ? packed : inflate(packed, method, bytesMax);
  if (bytes.length > bytesMax) throw tooLarge();
  if (crc32(bytes) !== crc) throw new Refused("is damaged: a file in it has a wrong checksum");
  return { name, bytes, crc };
}

const tooLarge = (): Refused => new Refused(`decompresses to more than ${UNPACKED_BYTES_MAX / 1_000_000} MB`);

function inflate(packed: Buffer, method: number, bytesMax: number): Buffer {
  if (method !== 8) throw new Refused("uses an unknown compression method");
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, bytesMax) });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
    throw error;
  }
}

function pack(entries: readonly Entry[]): ArrayBuffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, bytes, crc } of entries) {
    // The fields that both headers share, from the required version to the length of the extra field.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(crc, 10);
    common.writeUInt32LE(bytes.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.alloc(4);
    local.writeUInt32LE(LOCAL);
    const entry = Buffer.alloc(6);
    entry.writeUInt32LE(ENTRY);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(entry, common, place, name);
    parts.push(local, common, name, bytes);
    offset += 30 + name.length + bytes.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(END);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(offset, 16);
  const packed = Buffer.concat([...parts, listed, end]);
  return new Uint8Array(packed).buffer;
}
