import type { BrowserContext } from "playwright-core";

const KEPT_MAX = 20;
/** More than is shown, so that a secret is not cut before it is found. */
const CHARACTERS_MAX = 4_000;

/** Collects the last errors in the consoles of all pages. They may have secrets. */
export function watchConsole(context: BrowserContext): () => readonly string[] {
  const errors: string[] = [];
  const add = (text: string): void => {
    errors.push(text.slice(0, CHARACTERS_MAX));
    if (errors.length > KEPT_MAX) errors.shift();
  };
  context.on("console", (message) => {
    if (message.type() === "error") add(message.text());
  });
  context.on("weberror", (error) => add(error.error().message));
  return () => errors;
}
