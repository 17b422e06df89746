import { html, type Html } from "#lib/html.ts";

/** Text with code in backticks. */
export function renderInline(text: string): Html {
  return html`${text.split("`").map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))}`;
}

/** Renders a description: paragraphs, and lists of lines that begin with `- `. */
export function renderText(text: string): Html {
  return html`${text.split("\n\n").map((block) => {
    if (!block.startsWith("- ")) return html`<p>${renderInline(block)}</p>`;
    const items = block.split("\n").map((line) => html`<li>${renderInline(line.slice(2))}</li>`);
    return html`<ul>
      ${items}
    </ul>`;
  })}`;
}

/** JSON strings (names if a colon follows), numbers and words. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null|-?\d[\d.eE+-]*)\b/g;

/** A value as indented JSON with syntax highlighting. */
export function renderJson(value: unknown): Html {
  const text = JSON.stringify(value, null, 2);
  const parts: (string | Html)[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [whole, quoted, colon] = match;
    const kind = colon === undefined ? (quoted === undefined ? "json-word" : "json-text") : "json-name";
    parts.push(
      text.slice(at, match.index),
      html`<span class="${kind}">${quoted ?? whole}</span>`,
      colon ?? "",
    );
    at = match.index + whole.length;
  }
  return html`<pre tabindex="0"><code>${[...parts, text.slice(at)]}</code></pre>`;
}

/** A command to type. `tabindex`: a block that scrolls horizontally must be reachable by keyboard. */
export const renderShell = (source: string): Html => html`<pre tabindex="0"><code>${source}</code></pre>`;
