import type { Page } from "playwright-core";

/** What WCAG exempts, and axe passes over: disabled controls must still be readable. Placeholders are text. */
const STATES = [
  [":disabled, [data-disabled]", null, 3],
  ["input:placeholder-shown, textarea:placeholder-shown", "::placeholder", 4.5],
  ["[aria-invalid=true]", null, 4.5],
] as const;

/** Runs in the page, so it is text: the texts whose contrast with what is behind them is too low. */
const LOW = `(states) => {
  const parse = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const over = ([r, g, b, a = 1], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const color = parse(getComputedStyle(element).backgroundColor);
    if ((color[3] ?? 1) === 1) return color.slice(0, 3);
    return over(color, element.parentElement ? behind(element.parentElement) : [255, 255, 255]);
  };
  const found = [];
  for (const [selector, pseudo, least] of states)
    for (const element of document.querySelectorAll(selector)) {
      const text = pseudo ? element.placeholder : (element.value || element.textContent);
      if (!text?.trim() || element.getClientRects().length === 0 || element.type === "checkbox") continue;
      const style = getComputedStyle(element, pseudo);
      const back = behind(element);
      const [r, g, b, a = 1] = parse(style.color);
      const front = over([r, g, b, a * Number(style.opacity || 1) * (pseudo ? Number(getComputedStyle(element).opacity) : 1)], back);
      const [one, other] = [light(front), light(back)].sort((x, y) => y - x);
      const ratio = (one + 0.05) / (other + 0.05);
      if (ratio < least) found.push(selector + " " + JSON.stringify(text.slice(0, 40)) + ": " + ratio.toFixed(2));
    }
  return found;
}`;

/** Disabled controls, placeholders and wrong fields whose text is hard to read, in both color schemes. */
export async function lowContrast(page: Page): Promise<readonly string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const other = colorScheme === "light" ? "dark" : "light";
    await page.locator(`html:not([data-mantine-color-scheme=${other}])`).waitFor({ state: "attached" });
    const low = await page.evaluate<readonly string[]>(`(${LOW})(${JSON.stringify(STATES)})`);
    found.push(...low.map((each) => `${colorScheme}: ${each}`));
  }
  await page.emulateMedia({ colorScheme: null });
  return found;
}
