import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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

const css = readFileSync(new URL("../../src/hosted/pages/style.css", import.meta.url), "utf8");

for (const scheme of ["light", "dark"] as const) {
  test(`text on its ground has a contrast of 4.5:1 or more, a control's edge 3:1 (${scheme})`, () => {
    const color = readColors(css, scheme);
    for (const ground of ["ground", "card"]) {
      for (const text of ["text", "quiet"])
        assertContrast(color(text), color(ground), 4.5, `${text} on ${ground}`);
    }
    assertContrast(color("on-fill"), color("fill"), 4.5, "button");
    assertContrast(color("on-fill"), color("fill-strong"), 4.5, "button under the pointer");
    for (const ground of ["card", "ground", "accent-soft"])
      assertContrast(color("accent"), color(ground), 4.5, `a link on ${ground}`);
    assertContrast(color("text"), color("accent-soft"), 4.5, "a small button");
    assert.deepEqual({ card: color("card"), ground: color("ground") }, GROUNDS[scheme]);
    assertContrast(color("wrong"), color("card"), 4.5, "error");
    assertContrast(color("wrong"), color("wrong-soft"), 4.5, "error in the summary");
    assertContrast(color("text"), color("wrong-soft"), 4.5, "summary");
    assertContrast(color("text"), color("heed-soft"), 4.5, "notice");
    assertContrast(color("heed"), color("heed-soft"), 4.5, "sign of a notice");
    assertContrast(color("accent"), color("accent-soft"), 4.5, "tile");
    assertContrast(color("done"), color("done-soft"), 4.5, "sign");
    assertContrast(color("control-line"), color("card"), 3, "control");
    assertContrast(color("accent"), color("card"), 3, "focus");
  });
}

function readColors(css: string, scheme: "light" | "dark"): (name: string) => string {
  const [light = "", dark = ""] = css.split("@media (prefers-color-scheme: dark)");
  const block = (scheme === "light" ? light : dark).split(":root {")[1]?.split("}")[0] ?? "";
  const colors = new Map(
    [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name = "", value = ""]) => [name, value]),
  );
  return (name) => colors.get(name) ?? assert.fail(`no color ${name}`);
}

function assertContrast(a: string, b: string, least: number, what: string): void {
  assert.ok(contrast(a, b) >= least, `${what}: ${contrast(a, b).toFixed(2)}`);
}
