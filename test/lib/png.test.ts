// A picture that is too large is made smaller: a quarter of its pixels, each the mean of four.
import assert from "node:assert/strict";
import { test } from "node:test";
import { halve, readPng, writePng, type Pixels } from "#lib/png.ts";

const pixels = (width: number, height: number, of: (x: number, y: number) => readonly number[]): Pixels => ({
  width,
  height,
  rgb: Buffer.from(
    Array.from({ length: width * height }, (_, at) => of(at % width, Math.floor(at / width))).flat(),
  ),
});

test("each pixel of half a picture is the mean of four; what has one color keeps it", () => {
  const half = halve(pixels(4, 2, (x, y) => [x * 40, y * 100, x < 2 ? 7 : 200]));
  assert.deepEqual([half.width, half.height], [2, 1]);
  assert.deepEqual([...half.rgb], [20, 50, 7, 100, 50, 200]);
});

test("the last row and column of an odd number are left out, and one pixel stays one", () => {
  const half = halve(pixels(3, 5, (x, y) => [x === 2 || y === 4 ? 255 : 10, 0, 0]));
  assert.deepEqual([half.width, half.height, ...half.rgb], [1, 2, 10, 0, 0, 10, 0, 0]);
  assert.deepEqual([...halve(pixels(1, 1, () => [1, 2, 3])).rgb], [1, 2, 3]);
  assert.deepEqual([...halve(pixels(1, 2, (_x, y) => [y * 10, 0, 4])).rgb], [5, 0, 4]);
});

test("a picture is read as it was written", () => {
  const picture = pixels(5, 3, (x, y) => [x * 50, y * 80, (x * y * 31) % 256]);
  assert.deepEqual(readPng(writePng(picture)), picture);
});
