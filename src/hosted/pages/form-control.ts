import { textIn } from "#domain/language.ts";
import type { StrategyField } from "#domain/strategy.ts";
import { html, type Html } from "#lib/html.ts";
import type { Wording } from "#hosted/texts/texts.ts";
import { renderHeaderRows } from "./header-rows.ts";

/** The `id` of a field's control, which the error summary links to. */
export const controlId = (key: string): string => `field-${key}`;

/** Whether a field's value must never appear on a page again, regardless of its strategy. */
export const isSecret = (field: StrategyField): boolean =>
  field.secret || field.type === "password" || field.type === "totp_secret";

/** Previously entered values, by the names of the controls. */
export type TypedValues = ReadonlyMap<string, string>;

/**
 * One field: label, help, error and control, tied together for assistive technology. The control's name is the field's key.
 * No `maxlength`, which would silently cut a pasted password, and no `required` or `pattern`: the service reports
 * problems, in the same way for all browsers.
 */
export function renderControl(
  wording: Wording,
  field: StrategyField,
  typed: TypedValues,
  error: string | undefined,
): Html {
  const { texts, language } = wording;
  const id = controlId(field.key);
  const said = field.help === null ? null : textIn(field.help, language);
  const helpText = said ?? (field.type === "totp_secret" ? texts.totp_why : null);
  const help = html`${helpText !== null && html`<p class="help" id="${id}-help">${helpText}</p>`}
  ${
    field.type === "totp_secret" &&
    html`<details class="where">
      <summary>${texts.totp_where}</summary>
      <p class="help">${texts.totp_help}</p>
    </details>`
  }`;
  const wrong =
    error !== undefined &&
    html`<p class="error" id="${id}-error"><span class="unseen">${texts.error} </span>${error}</p>`;
  const describedBy = [helpText !== null && `${id}-help`, error !== undefined && `${id}-error`];
  const shared = [
    attribute("aria-invalid", error === undefined ? null : "true"),
    attribute("aria-describedby", describedBy.filter(Boolean).join(" ") || null),
  ];
  const style = `${error === undefined ? "field" : "field field-wrong"}${field.type === "totp_secret" ? " totp" : ""}`;
  const label = html`<bdi>${textIn(field.label, language)}</bdi
    >${!field.required && html` <span class="optional">${texts.optional}</span>`}`;
  if (field.type === "headers") {
    // A group is not marked as invalid; its invalid rows are.
    return html`<fieldset class="${style}" id="${id}" tabindex="-1" ${shared.slice(1)}>
      <legend>${label}</legend>
      ${help}${wrong}${renderHeaderRows(wording, field, typed, error !== undefined)}
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
        <span>${label}</span>
      </label>
      ${help}
    </div>`;
  }
  return html`<div class="${style}">
    <label for="${id}">${label}</label>
    ${help}${wrong}${renderInput(wording, field, isSecret(field) ? "" : (typed.get(field.key) ?? ""), attributes)}
  </div>`;
}

const attribute = (name: string, value: string | null): Html | false =>
  value !== null && html` ${name}="${value}"`;

/** Attributes of controls for values that are not prose: no automatic capitals, and no spell checker that transmits them. */
const VERBATIM = html`autocapitalize="none" autocorrect="off" spellcheck="false"`;

function renderInput(
  { texts, language }: Wording,
  field: StrategyField,
  value: string,
  attributes: readonly (Html | false)[],
): Html {
  const id = controlId(field.key);
  const placeholder = field.placeholder === null ? null : textIn(field.placeholder, language);
  const own = [
    attribute("autocomplete", autocomplete(field)),
    field.type === "select" ? false : attribute("placeholder", placeholder),
    ...attributes,
  ];
  switch (field.type) {
    case "textarea": {
      // A browser drops the first line break of a textarea; an additional one preserves the value.
      const style = isSecret(field) && html` class="covered"`;
      const area = html`<textarea
        id="${id}"
        name="${field.key}"
        rows="3"
        dir="auto"
        ${style}
        ${VERBATIM}
        ${own}
      >
${value}</textarea>`;
      return isSecret(field) ? withPeek(field, language, area) : area;
    }
    case "select":
      return html`<select id="${id}" name="${field.key}" ${own}>
        <option value="">${placeholder ?? texts.please_choose}</option>
        ${field.options.map(
          (option) =>
            html`<option value="${option.value}" ${option.value === value && html` selected`}>
              ${textIn(option.label, language)}
            </option>`,
        )}
      </select>`;
    case "file":
      return html`<input id="${id}" name="${field.key}" type="file" ${own} />`;
    default: {
      const type = controlType(field);
      const input = html`<input
        id="${id}"
        name="${field.key}"
        type="${type}"
        dir="${type === "text" ? "auto" : "ltr"}"
        ${VERBATIM}
        ${own}
        ${value !== "" && html` value="${value}"`}
      />`;
      return type === "password" ? withPeek(field, language, input) : input;
    }
  }
}

/** The place of the button that shows the value; the label completes the button's accessible name. */
const withPeek = (field: StrategyField, language: Wording["language"], control: Html): Html =>
  html`<div class="secret" data-label="${textIn(field.label, language)}">${control}</div>`;

function controlType(field: StrategyField): "text" | "email" | "url" | "password" {
  if (isSecret(field)) return "password";
  return field.type === "email" || field.type === "url" ? field.type : "text";
}

/** docs/decisions/0017: `off` for opaque secrets, a password manager's own words where it helps. */
function autocomplete(field: StrategyField): string | null {
  if (field.autocomplete !== null) return field.autocomplete;
  if (field.type === "file") return null;
  if (field.type === "password") return "current-password";
  if (isSecret(field)) return "off";
  return field.type === "email" || field.type === "url" ? field.type : null;
}
