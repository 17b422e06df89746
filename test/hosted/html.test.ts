import assert from "node:assert/strict";
import { test } from "node:test";
import { html, raw } from "#lib/html.ts";

test("text is escaped, HTML is not, and what is not there leaves nothing", () => {
  const inner = html`<b title="${`"'<&>`}">${"<i>"}</b>`;
  assert.equal(String(inner), `<b title="&quot;&#39;&lt;&amp;&gt;">&lt;i&gt;</b>`);
  assert.equal(
    String(html`[${inner}${null}${undefined}${false}${""}${0}${["<", [inner]]}]`),
    `[${inner}0&lt;${inner}]`,
  );
  assert.equal(String(html`${raw("<hr>")}`), "<hr>");
});

test("a promise in a page is a bug that is found at once", () => {
  const late = Promise.resolve("late") as unknown as string;
  assert.throws(() => html`${late}`, /must not contain a promise/);
});
