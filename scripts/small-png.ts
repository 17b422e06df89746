import { readPng, writePalettePng } from "#lib/png.ts";

/** The surfaces of a page and the steps of its letters' edges; what is rarer becomes the nearest of these. */
const COLORS_MAX = 64;

/** A screenshot as a PNG with a palette, a third of its size. Takes 8 bits a part, RGB or RGBA, not interlaced: what browsers make. */
export function shrinkPng(png: Buffer): Buffer {
  const { width, height, rgb } = readPng(png);
  const pixels = Uint32Array.from({ length: width * height }, (_, index) => rgb.readUIntBE(index * 3, 3));
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
  return writePalettePng({ width, height }, palette.map(partsOf), rows);
}

const partsOf = (color: number): number[] => [color >> 16, (color >> 8) & 255, color & 255];

function findNearest(color: number, palette: readonly number[]): number {
  const parts = partsOf(color);
  const distances = palette.map((other) =>
    partsOf(other).reduce((sum, part, index) => sum + (part - (parts[index] ?? 0)) ** 2, 0),
  );
  return distances.indexOf(Math.min(...distances));
}
