import assert from "node:assert/strict";
import { test } from "node:test";
import { accentColors, accentSheet, contrast, CONTRAST_MIN, GROUNDS } from "#hosted/accent.ts";

const PALETTE = Array.from({ length: 16 ** 3 }, (_, index) => {
  const digits = index.toString(16).padStart(3, "0");
  return `#${digits.replace(/./g, "$&$&")}`;
});

for (const scheme of ["light", "dark"] as const) {
  test(`whatever a customer's colour is, text on it and text in it is readable (${scheme}, 4096 colours)`, () => {
    for (const color of PALETTE) {
      const { fill, fillStrong, onFill, accent, soft } = accentColors(color, scheme);
      assert.equal(fill, color, "a button has the customer's own colour");
      for (const behind of [fill, fillStrong])
        assert.ok(contrast(onFill, behind) >= CONTRAST_MIN, `${onFill} on ${behind}, of ${color}`);
      for (const behind of [...Object.values(GROUNDS[scheme]), soft])
        assert.ok(contrast(accent, behind) >= CONTRAST_MIN, `${accent} on ${behind}, of ${color}`);
    }
  });
}

test("a colour that can be read is left as it is; black and white are the ends of the scale", () => {
  assert.equal(accentColors("#1f6f54", "light").accent, "#1f6f54");
  assert.notEqual(accentColors("#ffee00", "light").accent, "#ffee00");
  assert.equal(contrast("#000000", "#ffffff"), 21);
  // Of a published table of contrasts: WCAG's own example of a grey that just passes on white.
  assert.equal(contrast("#767676", "#ffffff").toFixed(2), "4.54");
});

test("the sheet says both schemes, and nothing but colours", () => {
  const sheet = accentSheet("#3355ff");
  assert.match(
    sheet,
    /^:root\{(--[a-z-]+:#[0-9a-f]{6};?)+\}@media \(prefers-color-scheme:dark\)\{:root\{(--[a-z-]+:#[0-9a-f]{6};?)+\}\}$/,
  );
});
