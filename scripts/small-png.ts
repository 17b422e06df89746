import { readPng, writePalettePng } from "#lib/png.ts";

/** The surfaces of a page and the steps of its letters' edges, and colours that are rare and unlike all others, as that of a warning. */
const COLORS = { frequent: 56, unlike: 24 } as const;

/** A screenshot as a PNG with a palette, a third of its size. Takes 8 bits a part, RGB or RGBA, not interlaced: what browsers make. */
export function shrinkPng(png: Buffer): Buffer {
  const { width, height, rgb } = readPng(png);
  const pixels = Uint32Array.from({ length: width * height }, (_, index) => rgb.readUIntBE(index * 3, 3));
  const counts = new Map<number, number>();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const palette = paletteOf(counts);
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

const distanceOf = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, part, index) => sum + (part - (b[index] ?? 0)) ** 2, 0);

/** What is left out becomes the nearest of these, so that each choice is the colour that would change most, in all its pixels. */
function paletteOf(counts: ReadonlyMap<number, number>): number[] {
  const byCount = [...counts].toSorted((a, b) => b[1] - a[1]);
  const palette = byCount.slice(0, COLORS.frequent).map(([color]) => color);
  const others = byCount.slice(COLORS.frequent).map(([color, count]) => {
    const parts = partsOf(color);
    const distance = Math.min(...palette.map((taken) => distanceOf(parts, partsOf(taken))));
    return { color, count, parts, distance };
  });
  for (let left = COLORS.unlike; left > 0 && others.length > 0; left--) {
    const weights = others.map(({ count, distance }) => count * distance);
    const [next] = others.splice(weights.indexOf(Math.max(...weights)), 1);
    if (next === undefined) break;
    palette.push(next.color);
    for (const other of others)
      other.distance = Math.min(other.distance, distanceOf(other.parts, next.parts));
  }
  return palette;
}

function findNearest(color: number, palette: readonly number[]): number {
  const parts = partsOf(color);
  const distances = palette.map((other) => distanceOf(parts, partsOf(other)));
  return distances.indexOf(Math.min(...distances));
}
