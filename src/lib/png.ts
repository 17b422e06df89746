import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
const RGB = 2;
const PALETTE = 3;
const RGBA = 6;

/** A picture: three bytes (red, green, blue) a pixel, row by row. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly rgb: Buffer;
}

/** Reads a PNG of 8 bits a part, RGB or RGBA, not interlaced: what browsers make. Throws Error if it is another kind. */
export function readPng(png: Buffer): Pixels {
  const data: Buffer[] = [];
  let header: Buffer = Buffer.alloc(13);
  for (let at = SIGNATURE.length; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const type = png.toString("latin1", at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + png.readUInt32BE(at));
    if (type === "IHDR") header = content;
    if (type === "IDAT") data.push(content);
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const [bits, kind, , , interlace] = header.subarray(8);
  if (bits !== 8 || (kind !== RGB && kind !== RGBA) || interlace !== 0)
    throw new Error("the PNG is not of 8 bits, RGB or RGBA, and not interlaced");
  const bytes = kind === RGBA ? 4 : 3;
  const rows = unfilter(inflateSync(Buffer.concat(data)), width * bytes, height, bytes);
  if (bytes === 3) return { width, height, rgb: rows };
  const rgb = Buffer.alloc(width * height * 3);
  for (let pixel = 0; pixel < width * height; pixel += 1) rows.copy(rgb, pixel * 3, pixel * 4, pixel * 4 + 3);
  return { width, height, rgb };
}

/** A quarter of the pixels, each the mean of four. The last row or column of an odd number is left out. */
export function halve({ width, height, rgb }: Pixels): Pixels {
  const half = { width: Math.max(width >> 1, 1), height: Math.max(height >> 1, 1) };
  const small = Buffer.alloc(half.width * half.height * 3);
  const rowBytes = width * 3;
  for (let y = 0; y < half.height; y += 1)
    for (let x = 0; x < half.width; x += 1)
      for (let color = 0; color < 3; color += 1) {
        const from = y * 2 * rowBytes + x * 6 + color;
        const right = width > 1 ? 3 : 0;
        const below = height > 1 ? rowBytes : 0;
        const sum =
          (rgb[from] ?? 0) +
          (rgb[from + right] ?? 0) +
          (rgb[from + below] ?? 0) +
          (rgb[from + right + below] ?? 0);
        small[(y * half.width + x) * 3 + color] = sum >> 2;
      }
  return { ...half, rgb: small };
}

export function writePng({ width, height, rgb }: Pixels): Buffer {
  const rows = Buffer.alloc((width * 3 + 1) * height);
  for (let y = 0; y < height; y += 1)
    rgb.copy(rows, y * (width * 3 + 1) + 1, y * width * 3, (y + 1) * width * 3);
  return pngOf({ width, height }, RGB, [chunk("IDAT", deflateSync(rows, { level: 6 }))]);
}

/** `rows`: for each row a zero, and then one byte a pixel: the index of its color in the palette. */
export function writePalettePng(
  size: Pick<Pixels, "width" | "height">,
  palette: readonly (readonly number[])[],
  rows: Buffer,
): Buffer {
  return pngOf(size, PALETTE, [
    chunk("PLTE", Buffer.from(palette.flat())),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
  ]);
}

function pngOf(
  { width, height }: Pick<Pixels, "width" | "height">,
  kind: number,
  chunks: readonly Buffer[],
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, kind, 0, 0, 0], 8);
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), ...chunks, chunk("IEND", Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

/** PNG, 9.2: each row says how its bytes were predicted from those beside and above. */
function unfilter(filtered: Buffer, rowBytes: number, height: number, bytes: number): Buffer {
  const rows = Buffer.alloc(rowBytes * height);
  for (let y = 0; y < height; y += 1) {
    const from = y * (rowBytes + 1);
    const filter = filtered[from] ?? 0;
    for (let x = 0; x < rowBytes; x += 1) {
      const at = y * rowBytes + x;
      const left = x >= bytes ? (rows[at - bytes] ?? 0) : 0;
      const above = y > 0 ? (rows[at - rowBytes] ?? 0) : 0;
      const corner = x >= bytes && y > 0 ? (rows[at - rowBytes - bytes] ?? 0) : 0;
      rows[at] = ((filtered[from + 1 + x] ?? 0) + predict(filter, left, above, corner)) & 255;
    }
  }
  return rows;
}

function predict(filter: number, left: number, above: number, corner: number): number {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return above;
    case 3:
      return (left + above) >> 1;
    case 4:
      return paeth(left, above, corner);
    default:
      return 0;
  }
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const a = Math.abs(guess - left);
  const b = Math.abs(guess - above);
  const c = Math.abs(guess - corner);
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}
