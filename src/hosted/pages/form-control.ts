import type { StrategyField } from "#domain/strategy.ts";
import { html, type Html } from "#lib/html.ts";
import { renderHeaderRows } from "./header-rows.ts";

/** The `id` of a field's control, which the error summary links to. */
export const controlId = (key: string): string => `field-${key}`;

/** Whether a field's value must never be on a page again, whatever its strategy says. */
export const isSecret = (field: StrategyField): boolean =>
  field.secret || field.type === "password" || field.type === "totp_secret";

/** What was typed before, by the names of the controls. */
export type TypedValues = ReadonlyMap<string, string>;

/**
 * One field: label, help, error and control, tied together for assistive technology. The control's name is the field's key.
 * No `maxlength`, which would cut a pasted password without a word, and no `required` or `pattern`: the service says what is
 * wrong, in one way for all browsers.
 */
export function renderControl(field: StrategyField, typed: TypedValues, error: string | undefined): Html {
  const id = controlId(field.key);
  const help = field.help !== null && html`<p class="help" id="${id}-help">${field.help}</p>`;
  const wrong =
    error !== undefined &&
    html`<p class="error" id="${id}-error"><span class="unseen">Error: </span>${error}</p>`;
  const describedBy = [field.help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ");
  const shared = [
    attribute("aria-invalid", error === undefined ? null : "true"),
    attribute("aria-describedby", describedBy || null),
  ];
  const style = error === undefined ? "field" : "field field-wrong";
  const optional = !field.required && OPTIONAL;
  if (field.type === "headers") {
    return html`<fieldset class="${style}" id="${id}" tabindex="-1" ${shared}>
      <legend>${field.label}${optional}</legend>
      ${help}${wrong}${renderHeaderRows(field, typed)}
    </fieldset>`;
  }
  const attributes = [attribute("aria-required", field.required ? "true" : null), ...shared];
  if (field.type === "checkbox") {
    const ticked = !isSecret(field) && (typed.get(field.key) ?? "") !== "";
    return html`<div class="${style}">
      ${wrong}
      <label class="tick" for="${id}">
        <input
          id="${id}"
          name="${field.key}"
          type="checkbox"
          value="true"
          ${ticked && html` checked`}
          ${attributes}
        />
        <span>${field.label}${optional}</span>
      </label>
      ${help}
    </div>`;
  }
  return html`<div class="${style}">
    <label for="${id}">${field.label}${optional}</label>
    ${help}${wrong}${renderInput(field, isSecret(field) ? "" : (typed.get(field.key) ?? ""), attributes)}
  </div>`;
}

const OPTIONAL = html` <span class="optional">(optional)</span>`;

const attribute = (name: string, value: string | null): Html | false =>
  value !== null && html` ${name}="${value}"`;

function renderInput(field: StrategyField, value: string, attributes: readonly (Html | false)[]): Html {
  const id = controlId(field.key);
  const own = [
    attribute("autocomplete", autocomplete(field)),
    field.type === "select" ? null : attribute("placeholder", field.placeholder),
    ...attributes,
  ];
  switch (field.type) {
    case "textarea":
      // A browser drops the first line break of a textarea: one more keeps what was typed.
      return html`<textarea
        id="${id}"
        name="${field.key}"
        class="${isSecret(field) ? "covered" : ""}"
        rows="5"
        autocapitalize="none"
        autocorrect="off"
        spellcheck="false"
        ${own}
      >
${value}</textarea>`;
    case "select":
      return html`<select id="${id}" name="${field.key}" ${own}>
        <option value="">${field.placeholder ?? "Please choose"}</option>
        ${field.options.map(
          (option) =>
            html`<option value="${option.value}" ${option.value === value && html` selected`}>
              ${option.label}
            </option>`,
        )}
      </select>`;
    case "file":
      return html`<input id="${id}" name="${field.key}" type="file" ${own} />`;
    default:
      return html`<input
        id="${id}"
        name="${field.key}"
        type="${controlType(field)}"
        autocapitalize="none"
        autocorrect="off"
        spellcheck="false"
        ${own}
        ${value !== "" && html` value="${value}"`}
      />`;
  }
}

function controlType(field: StrategyField): "text" | "email" | "url" | "password" {
  if (isSecret(field)) return "password";
  return field.type === "email" || field.type === "url" ? field.type : "text";
}

/** Design, page 6, 5.4: `off` for opaque secrets, a password manager's own words where it helps. */
function autocomplete(field: StrategyField): string | null {
  if (field.autocomplete !== null) return field.autocomplete;
  if (field.type === "file") return null;
  if (field.type === "password") return "current-password";
  if (isSecret(field)) return "off";
  return field.type === "email" || field.type === "url" ? field.type : null;
}
