/** The page colours that are derived from a customer's accent colour, so that text stays readable. */
export interface AccentColors {
  /** Buttons: the customer's own colour. */
  readonly fill: string;
  /** Buttons under the pointer. */
  readonly fillStrong: string;
  readonly onFill: string;
  /** Links, edges and focus: the closest readable colour to the customer's. */
  readonly accent: string;
  /** A tint behind accent-coloured text. */
  readonly soft: string;
}

export type Scheme = "light" | "dark";
type Rgb = readonly [red: number, green: number, blue: number];

/** The backgrounds of text: the same as in `pages/style.css`, which a test compares. */
export const GROUNDS = {
  light: { card: "#ffffff", ground: "#f3f5f8" },
  dark: { card: "#191f29", ground: "#10141b" },
} as const;

/** WCAG 2.2, 1.4.3. */
export const CONTRAST_MIN = 4.5;
const WHITE = "#ffffff";
const BLACK = "#000000";
const TINT = { light: 0.1, dark: 0.18 } as const;
const STRONGER = 0.14;
const STEPS = 100;

/** `#rrggbb` in, `#rrggbb` out. */
export function accentColors(color: string, scheme: Scheme): AccentColors {
  const { card, ground } = GROUNDS[scheme];
  const soft = mix(card, color, TINT[scheme]);
  const away = scheme === "light" ? BLACK : WHITE;
  const readable = (candidate: string): boolean =>
    [card, ground, soft].every((behind) => contrast(candidate, behind) >= CONTRAST_MIN);
  const candidates = Array.from({ length: STEPS + 1 }, (_, step) => mix(color, away, step / STEPS));
  // One of the two always has enough contrast: the product of their contrasts is 21.
  const onFill = contrast(WHITE, color) >= CONTRAST_MIN ? WHITE : BLACK;
  return {
    fill: color,
    fillStrong: mix(color, onFill === WHITE ? BLACK : WHITE, STRONGER),
    onFill,
    accent: candidates.find(readable) ?? away,
    soft,
  };
}

/** The style sheet of an accent colour, which goes after the common one. */
export function accentSheet(color: string): string {
  const { light, dark } = rulesOf(color);
  return `:root${light}@media (prefers-color-scheme:dark){:root${dark}}`;
}

/** The same for a frame, whose page may have selected a colour scheme. */
export function themedAccentSheet(color: string): string {
  const { light, dark } = rulesOf(color);
  return `${accentSheet(color)}:root[data-theme=light]${light}:root[data-theme=dark]${dark}`;
}

function rulesOf(color: string): Readonly<Record<Scheme, string>> {
  const rules = (scheme: Scheme): string => {
    const { fill, fillStrong, onFill, accent, soft } = accentColors(color, scheme);
    return `{--fill:${fill};--fill-strong:${fillStrong};--on-fill:${onFill};--accent:${accent};--accent-soft:${soft}}`;
  };
  return { light: rules("light"), dark: rules("dark") };
}

/** WCAG 2.2, "contrast ratio". */
export function contrast(a: string, b: string): number {
  const [darker = 0, lighter = 0] = [luminance(a), luminance(b)].toSorted((x, y) => x - y);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(color: string): number {
  const [red, green, blue] = parse(color).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function parse(color: string): Rgb {
  const part = (at: number): number => Number.parseInt(color.slice(at, at + 2), 16);
  return [part(1), part(3), part(5)];
}

function mix(from: string, to: string, share: number): string {
  const [a, b] = [parse(from), parse(to)];
  const parts = a.map((part, index) => Math.round(part + ((b[index] ?? 0) - part) * share));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}
