import { headerRows } from "#domain/header-rows.ts";
import type { StrategyField } from "#domain/strategy.ts";
import { html, type Html } from "#lib/html.ts";

const SHOWN_ROWS = 3;

/**
 * The rows of a field of headers: some, and the rest behind "Add more", which a browser opens without script and without
 * sending the form (a page that came back would have lost the secrets that were typed).
 */
export function renderHeaderRows(field: StrategyField, typed: ReadonlyMap<string, string>): Html {
  const rows = headerRows(field.key).map((row, index) => ({
    html: renderRow(field, row, index + 1, typed),
    isUsed: (typed.get(row.name) ?? "") !== "",
  }));
  const more = rows.slice(SHOWN_ROWS);
  return html`${rows.slice(0, SHOWN_ROWS).map((row) => row.html)}
    <details class="more" ${more.some((row) => row.isUsed) && html` open`}>
      <summary>Add more</summary>
      ${more.map((row) => row.html)}
    </details>`;
}

function renderRow(
  field: StrategyField,
  row: { readonly name: string; readonly value: string },
  number: number,
  typed: ReadonlyMap<string, string>,
): Html {
  const value = field.secret ? "" : (typed.get(row.value) ?? "");
  return html`<div class="pair-row">
    ${renderText(row.name, `${field.label}, name ${number}`, "Name", "text", typed.get(row.name) ?? "")}
    ${renderText(row.value, `${field.label}, value ${number}`, "Value", field.secret ? "password" : "text", value)}
  </div>`;
}

function renderText(name: string, label: string, placeholder: string, type: string, value: string): Html {
  return html`<input
    name="${name}"
    type="${type}"
    aria-label="${label}"
    placeholder="${placeholder}"
    autocomplete="off"
    autocapitalize="none"
    autocorrect="off"
    spellcheck="false"
    ${value !== "" && html` value="${value}"`}
  />`;
}
