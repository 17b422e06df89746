import type { LocatorConfig } from "#answers/browser/locator.ts";
import type { RecordedLocator } from "#outbound/browser/recorder.ts";

type Part = { -readonly [K in keyof LocatorConfig]: LocatorConfig[K] };

/** What the driver's recorder calls them, and what documents do. */
const TEXTS: Readonly<Record<string, keyof LocatorConfig>> = {
  label: "label",
  placeholder: "placeholder",
  text: "text",
  alt: "alt",
  title: "title",
};

/** A recorded locator in the words of documents. Null: they have none for it. */
export function locatorOf(recorded: RecordedLocator | null): LocatorConfig | null {
  let found: Part | null = null;
  let frame: LocatorConfig | null = null;
  for (let part = recorded ?? undefined; part !== undefined; part = part.next) {
    const nth = nthOf(part);
    if (nth !== null) {
      if (found === null || found.nth !== undefined) return null;
      found.nth = nth;
    } else if (part.kind === "has-text" && found !== null && typeof part.body === "string")
      found.has_text = part.body;
    else if (part.kind === "frame" || part.kind === "frame-locator") {
      frame = part.kind === "frame" ? found : { css: String(part.body), ...(found && { in: found }) };
      if (frame === null) return null;
      found = null;
    } else {
      const next = baseOf(part);
      if (next === null) return null;
      if (found !== null) next.in = found;
      else if (frame !== null) next.frame = frame;
      found = next;
    }
  }
  return found;
}

function nthOf({ kind, body }: RecordedLocator): number | null {
  if (kind === "first") return 0;
  if (kind === "last") return -1;
  return kind === "nth" ? Number(body) : null;
}

function baseOf({ kind, body, options = {} }: RecordedLocator): Part | null {
  if (typeof body !== "string") return null;
  const exact = options["exact"] === true ? { exact: true } : {};
  const text = TEXTS[kind];
  if (text !== undefined) return { [text]: body, ...exact };
  if (kind === "test-id") return { test_id: body };
  if (kind === "role") return roleOf(body, options, exact);
  if (kind !== "default" || /^(xpath|text|internal:)|>>/.test(body)) return null;
  const { hasText } = options;
  return { css: body, ...(typeof hasText === "string" && { has_text: hasText }) };
}

function roleOf(role: string, { name, attrs }: NonNullable<RecordedLocator["options"]>, exact: Part): Part {
  const found: Part = { role, ...(typeof name === "string" && { name, ...exact }) };
  for (const attr of Array.isArray(attrs) ? (attrs as { name: string; value: unknown }[]) : []) {
    if (attr.name === "level") found.level = Number(attr.value);
    if (attr.name === "checked") found.checked = attr.value === true;
  }
  return found;
}

const OF_PAGE = ["name", "label", "placeholder", "text", "alt", "title", "has_text"] as const;

/** The locator with every text of the page replaced. */
export function mapTexts(locator: LocatorConfig, change: (text: string) => string): LocatorConfig {
  const changed: Part = { ...locator };
  for (const key of OF_PAGE) {
    const text = locator[key];
    if (text !== undefined) changed[key] = change(text);
  }
  if (locator.in !== undefined) changed.in = mapTexts(locator.in, change);
  if (locator.frame !== undefined) changed.frame = mapTexts(locator.frame, change);
  return changed;
}

/** The words by which people call the element: its name, label or text. */
export const wordsOf = ({ name, label, placeholder, text, title, test_id }: LocatorConfig): string =>
  name ?? label ?? placeholder ?? text ?? title ?? test_id ?? "";
