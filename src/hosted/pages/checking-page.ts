import type { Brand } from "#domain/branding.ts";
import { textIn, type LocalText } from "#domain/language.ts";
import { html, type Html } from "#lib/html.ts";
import { plainText, say, type Wording } from "#hosted/texts/texts.ts";
import { renderDocument, renderPair, SPINNER, type Shell, type View } from "./document.ts";

/** What is said while a submitted login is tried. */
export interface Checking {
  readonly brand: Brand;
  readonly strategyName: LocalText;
  /** The address of the system's logo; null: its first letter is shown. */
  readonly targetLogo: string | null;
}

/** The page asks for the outcome by sending this form, in which what was typed and is not secret is kept for another try. */
export interface CheckingForm {
  readonly action: string;
  readonly csrf: string;
  /** By the controls' names; without anything secret. */
  readonly values: ReadonlyMap<string, string>;
}

export const renderChecking = (shell: Shell, checking: Checking, form: CheckingForm): Html =>
  renderDocument(shell, checkingView(shell, checking, renderAsking(shell.wording, form)));

/** The same on a page and in a frame, whose script asks by itself: `ways` are its exits. */
export function checkingView({ wording, base }: Shell, checking: Checking, more: Html): View {
  const { brand, strategyName, targetLogo } = checking;
  const system = textIn(strategyName, wording.language);
  const body = html`${renderPair(base, brand, system, targetLogo)} ${SPINNER}
    <h1>${say(wording, "checking_heading", { system })}</h1>
    <p class="lead" role="status">${say(wording, "checking", { system })}</p>
    ${more}`;
  return { title: plainText(wording, "checking_heading", { system }), body, isWaiting: true };
}

/** The script sends it at once; the answer comes with the outcome. */
const renderAsking = ({ texts }: Wording, { action, csrf, values }: CheckingForm): Html =>
  html`<form class="check" method="post" action="${action}">
    <input type="hidden" name="_csrf" value="${csrf}" />
    ${[...values].map(([name, value]) => html`<textarea name="${name}" hidden>${value}</textarea>`)}
    <noscript><button type="submit">${texts.checking_look}</button></noscript>
  </form>`;
