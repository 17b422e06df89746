import { Type } from "#lib/type.ts";
import { onElement, type StepRun, type Terms } from "./define-step.ts";
import { locatorPart, type LocatorConfig } from "./locator.ts";

/** The keys of `fill` and `type`. */
export interface EnterConfig extends LocatorConfig {
  readonly with: string;
}

export const ENTER_SCHEMA = (terms: Terms) =>
  onElement(terms, {
    with:
      terms.place === "login" ? terms.text(SECRET) : Type.Optional(terms.text("The value. Default: empty.")),
  });

const SECRET = "The value. The only key of a step that may have a secret.";

/** In a login every value goes the way of secrets: nobody has to decide which of them are. */
export async function enterValue(run: StepRun, config: EnterConfig, by: "fill" | "type"): Promise<void> {
  const field = await run.find(locatorPart(config as never));
  const timeout = run.timeoutMs;
  if (run.place === "login") {
    await run.browser.enterSecret(field, await run.text(config.with), by, timeout);
    return;
  }
  const value = await run.text(config.with ?? "");
  if (by === "fill") await field.fill(value, { timeout });
  else await field.pressSequentially(value, { timeout });
}
