import { headerRows } from "#domain/header-rows.ts";
import { textIn } from "#domain/language.ts";
import type { StrategyField } from "#domain/strategy.ts";
import { html, type Html } from "#lib/html.ts";
import { plainText, type Wording } from "#hosted/texts/texts.ts";

const SHOWN_ROWS = 3;

/**
 * The rows of a field of headers. Some are hidden behind "Add more", which a browser expands without scripts and without
 * submitting the form (reloading the page would lose the entered secrets). With scripts, rows are shown one at a time.
 */
export function renderHeaderRows(
  wording: Wording,
  field: StrategyField,
  typed: ReadonlyMap<string, string>,
  isWrong: boolean,
): Html {
  const rows = headerRows(field.key).map((row, index) => ({
    html: renderRow(wording, field, { ...row, number: index + 1 }, typed, isWrong),
    isUsed: (typed.get(row.name) ?? "") !== "",
  }));
  const more = rows.slice(SHOWN_ROWS);
  return html`<div class="rows">
    ${rows.slice(0, SHOWN_ROWS).map((row) => row.html)}
    <details class="more" ${more.some((row) => row.isUsed) && html` open`}>
      <summary>${wording.texts.header_more}</summary>
      ${more.map((row) => row.html)}
    </details>
  </div>`;
}

function renderRow(
  wording: Wording,
  field: StrategyField,
  row: { readonly name: string; readonly value: string; readonly number: number },
  typed: ReadonlyMap<string, string>,
  isWrong: boolean,
): Html {
  const { texts, language } = wording;
  const { number } = row;
  const label = textIn(field.label, language);
  const name = typed.get(row.name) ?? "";
  const value = field.secret ? "" : (typed.get(row.value) ?? "");
  // The message says which one is invalid. Marks the rows that were used, or else the first one.
  const marked = isWrong && (name !== "" || (typed.get(row.value) ?? "") !== "" || number === 1);
  const input = (key: string, type: string, says: string, placeholder: string, content: string): Html =>
    html`<input
      name="${key}"
      type="${type}"
      dir="ltr"
      aria-label="${says}"
      placeholder="${placeholder}"
      autocomplete="off"
      autocapitalize="none"
      spellcheck="false"
      ${marked && html` aria-invalid="true"`}${content !== "" && html` value="${content}"`}
    />`;
  return html`<div class="pair-row">
    ${input(row.name, "text", plainText(wording, "header_name_of", { field: label, number }), texts.header_name, name)}
    ${input(row.value, field.secret ? "password" : "text", plainText(wording, "header_value_of", { field: label, number }), texts.header_value, value)}
  </div>`;
}
