import { html, type Html, type HtmlPart } from "#lib/html.ts";
import { say, type Texts, type Wording } from "#hosted/texts/texts.ts";
import { renderDocument, renderBrandTile, type Shell, type View } from "./document.ts";

/** The pages without a form: the outcome, and the next step. They disclose nothing that the end user does not already know. */
export function messageView(
  kind: "done" | "notice",
  heading: string,
  ...paragraphs: readonly HtmlPart[]
): View {
  const [style, sign] = kind === "done" ? ["sign sign-done", CHECK] : ["sign", EXCLAMATION];
  return {
    title: heading,
    body: html`<div class="${style}" aria-hidden="true">${sign}</div>
      <h1>${heading}</h1>
      ${paragraphs.map((paragraph) => html`<p class="lead">${paragraph}</p>`)}`,
  };
}

/** Where the end user can go from a page without a form; null: there is no such address. */
export interface Ways {
  /** To the customer. */
  readonly back?: string | null;
  /** To the link that was opened, where that may help: then it is the page's button. */
  readonly again?: string | null;
}

/** With the customer's name, if it is known, and the ways from here. */
function renderMessage(
  shell: Shell,
  { back = null, again = null }: Ways,
  ...message: Parameters<typeof messageView>
): Html {
  const view = messageView(...message);
  const ways = again === null ? renderBack(shell, back) : renderAgain(shell, again, back);
  return renderDocument(shell, { ...view, body: html`${renderBrand(shell)} ${view.body} ${ways}` });
}

const renderAgain = ({ wording }: Shell, again: string, back: string | null): Html =>
  html`<p class="way"><a class="button" href="${again}">${wording.texts.open_again}</a></p>
    ${
      back !== null &&
      html`<p class="caution">
        <a href="${back}">${say(wording, "continue_to", { host: new URL(back).host })}</a>
      </p>`
    }`;

export const renderBrand = ({ base, brand }: Shell): Html | false =>
  brand !== null &&
  html`<p class="pair">
    <span aria-hidden="true">${renderBrandTile(base, brand)}</span><bdi>${brand.name}</bdi>
  </p>`;

const renderBack = ({ wording }: Shell, back: string | null): Html | false =>
  back !== null &&
  html`<p class="way">
    <a class="button" href="${back}">${say(wording, "continue_to", { host: new URL(back).host })}</a>
  </p>`;

const CHECK = html`<svg viewBox="0 0 24 24" focusable="false">
  <path
    fill="none"
    stroke="currentColor"
    stroke-width="2.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    d="m5 12.5 4.5 4.5L19 7.5"
  />
</svg>`;
const EXCLAMATION = html`<svg viewBox="0 0 24 24" focusable="false">
  <path fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" d="M12 6v7.5M12 18v.01" />
</svg>`;

/** After a submit without a `return_url`. The login was received, not tested: spec, Credential session rule 1. */
export function renderSuccess(
  shell: Shell,
  {
    account,
    system,
    back = null,
  }: { readonly account: string; readonly system: string; readonly back?: string | null },
): Html {
  const { texts } = shell.wording;
  const success = saySuccess(shell.wording, account, system);
  // With a way back, that is what to do next.
  const next = back === null ? [texts.close_now] : [];
  return renderMessage(shell, { back }, "done", texts.success_heading, success, ...next);
}

export const saySuccess = (wording: Wording, account: string, system: string): HtmlPart =>
  say(wording, "success", { account, system }, (text) => html`<strong><bdi>${text}</bdi></strong>`);

/** A page whose text is fixed, apart from its language. */
const plain =
  (heading: keyof Texts & `${string}_heading`, ...rest: readonly Exclude<keyof Texts, "issues">[]) =>
  (shell: Shell, ways: Ways = {}): Html =>
    renderMessage(
      shell,
      ways,
      "notice",
      shell.wording.texts[heading],
      ...rest.map((key) => shell.wording.texts[key]),
    );

/** 410: the session is completed. */
export const renderUsed = plain("used_heading", "used", "used_other");

/** 404: no session has this token. */
export const renderUnknown = plain("unknown_heading", "unknown", "ask_again");

/** 400: the `state` belongs to no sign-in of this browser, or was used already. */
export const renderSignInUnknown = plain("return_heading", "return_unknown", "return_next");

/** 403: the submit did not come from the service's form. */
export const renderForbidden = plain("forbidden_heading", "forbidden", "forbidden_next");

/** 413. */
export const renderTooLarge = plain("too_large_heading", "too_large", "too_large_next");

/** 429: too many forms were sent, from one link or from one address. */
export const renderTooMany = plain("frame_limit_heading", "problem");

/** 500 and 503: whether anything was saved is not known here. */
export const renderProblem = plain("problem_heading", "problem");

/** An entered value with its label. Never a secret. */
export interface Typed {
  readonly label: string;
  readonly value: string;
}

/** 410: the session has expired; also the answer to a late submit, which shows the entered values again. */
export function renderExpired(
  shell: Shell,
  { back = null, typed = [] }: { readonly back?: string | null; readonly typed?: readonly Typed[] } = {},
): Html {
  const { texts } = shell.wording;
  return renderDocument(shell, {
    title: texts.expired_heading,
    body: html`${renderBrand(shell)}
      <div class="sign" aria-hidden="true">${EXCLAMATION}</div>
      <h1>${texts.expired_heading}</h1>
      <p class="lead">${texts.ask_again}</p>
      ${renderBack(shell, back)} ${renderTyped(shell.wording, typed)}`,
  });
}

/** The entered values, to be copied. */
export const renderTyped = ({ texts }: Wording, typed: readonly Typed[]): Html | false =>
  typed.length > 0 &&
  html`<section class="typed">
    <h2>${texts.typed_heading}</h2>
    <p>${texts.typed}</p>
    <dl>
      ${typed.map(
        ({ label, value }) =>
          html`<dt><bdi>${label}</bdi></dt>
            <dd dir="auto">${value}</dd>`,
      )}
    </dl>
  </section>`;
