import type { StrategyField } from "#domain/strategy.ts";
import { html, type Html } from "#lib/html.ts";

/** The `id` of a field's control, which the error summary links to. */
export const controlId = (key: string): string => `field-${key}`;

/** Whether a field's value must never be on a page again, whatever its strategy says. */
export const isSecret = (field: StrategyField): boolean =>
  field.secret || field.type === "password" || field.type === "totp_secret";

/**
 * One field: label, help, error and control, tied together for assistive technology. The control's name is the field's key.
 * No `maxlength`, which would cut a pasted password without a word, and no `required` or `pattern`: the service says what is
 * wrong, in one way for all browsers.
 */
export function renderControl(
  field: StrategyField,
  value: string | undefined,
  error: string | undefined,
): Html {
  const id = controlId(field.key);
  const describedBy = [field.help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ");
  const attributes = [
    attribute("autocomplete", autocomplete(field)),
    attribute("placeholder", field.placeholder),
    attribute("aria-required", field.required ? "true" : null),
    attribute("aria-invalid", error === undefined ? null : "true"),
    attribute("aria-describedby", describedBy || null),
    attribute("value", isSecret(field) ? null : (value ?? null)),
  ];
  return html`<div class="${error === undefined ? "field" : "field field-wrong"}">
    <label for="${id}">${field.label}${!field.required && OPTIONAL}</label>
    ${field.help !== null && html`<p class="help" id="${id}-help">${field.help}</p>`}
    ${error !== undefined && html`<p class="error" id="${id}-error"><span class="unseen">Error: </span>${error}</p>`}
    <input
      id="${id}"
      name="${field.key}"
      type="${controlType(field)}"
      autocapitalize="none"
      autocorrect="off"
      spellcheck="false"
      ${attributes}
    />
  </div>`;
}

const OPTIONAL = html` <span class="optional">(optional)</span>`;

const attribute = (name: string, value: string | null): Html | false =>
  value !== null && html` ${name}="${value}"`;

function controlType(field: StrategyField): "text" | "email" | "password" {
  if (isSecret(field)) return "password";
  return field.type === "email" ? "email" : "text";
}

/** Design, page 6, 5.4: `off` for opaque secrets, a password manager's own words where it helps. */
function autocomplete(field: StrategyField): string | null {
  if (field.autocomplete !== null) return field.autocomplete;
  if (field.type === "password") return "current-password";
  if (isSecret(field)) return "off";
  return field.type === "email" ? "email" : null;
}
