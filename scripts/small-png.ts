import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
/** The surfaces of a page and the steps of its letters' edges; what is rarer becomes the nearest of these. */
const COLORS_MAX = 64;

/** A screenshot as a PNG with a palette, a third of its size. Takes 8 bits a part, RGB or RGBA, not interlaced: what browsers make. */
export function shrinkPng(png: Buffer): Buffer {
  const { width, height, pixels } = readPixels(png);
  const counts = new Map<number, number>();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const palette = [...counts]
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, COLORS_MAX)
    .map(([color]) => color);
  const nearest = new Map(palette.map((color, index) => [color, index]));
  const rows = Buffer.alloc((width + 1) * height);
  for (const [at, color] of pixels.entries()) {
    let index = nearest.get(color);
    if (index === undefined) nearest.set(color, (index = findNearest(color, palette)));
    rows[at + Math.floor(at / width) + 1] = index;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette.flatMap(partsOf))),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

const partsOf = (color: number): number[] => [color >> 16, (color >> 8) & 255, color & 255];

function findNearest(color: number, palette: readonly number[]): number {
  const parts = partsOf(color);
  const distances = palette.map((other) =>
    partsOf(other).reduce((sum, part, index) => sum + (part - (parts[index] ?? 0)) ** 2, 0),
  );
  return distances.indexOf(Math.min(...distances));
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

function readPixels(png: Buffer): {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array;
} {
  const data: Buffer[] = [];
  let header: Buffer = Buffer.alloc(0);
  for (let at = SIGNATURE.length; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const type = png.toString("latin1", at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + png.readUInt32BE(at));
    if (type === "IHDR") header = content;
    if (type === "IDAT") data.push(content);
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const bytes = header[9] === 6 ? 4 : 3;
  const rows = unfilter(inflateSync(Buffer.concat(data)), width * bytes, height, bytes);
  const pixels = Uint32Array.from({ length: width * height }, (_, index) =>
    rows.readUIntBE(index * bytes, 3),
  );
  return { width, height, pixels };
}

/** PNG, 9.2: each row says how its bytes were predicted from those beside and above. */
function unfilter(filtered: Buffer, rowBytes: number, height: number, bytes: number): Buffer {
  const rows = Buffer.alloc(rowBytes * height);
  for (let y = 0; y < height; y += 1) {
    const filter = filtered[y * (rowBytes + 1)] ?? 0;
    for (let x = 0; x < rowBytes; x += 1) {
      const at = y * rowBytes + x;
      const left = x >= bytes ? (rows[at - bytes] ?? 0) : 0;
      const above = y > 0 ? (rows[at - rowBytes] ?? 0) : 0;
      const corner = x >= bytes && y > 0 ? (rows[at - rowBytes - bytes] ?? 0) : 0;
      const predicted =
        [0, left, above, Math.floor((left + above) / 2), paeth(left, above, corner)][filter] ?? 0;
      rows[at] = ((filtered[y * (rowBytes + 1) + 1 + x] ?? 0) + predicted) & 255;
    }
  }
  return rows;
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}
