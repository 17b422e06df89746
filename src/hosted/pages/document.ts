import type { Brand } from "#domain/branding.ts";
import { LANGUAGES } from "#domain/language.ts";
import { TEST_VALUES } from "#domain/test-mode.ts";
import { html, type Html } from "#lib/html.ts";
import { accentPath, assetPath, logoPath, themesPath } from "#hosted/assets.ts";
import { directionOf, say, type Wording } from "#hosted/texts/texts.ts";
import { LANGUAGE_NAMES } from "#hosted/texts/wordings.ts";

/** The shell around every view. */
export interface Shell {
  readonly wording: Wording;
  /** The path of the pages, as the browser knows it: `/connect`. */
  readonly base: string;
  /** null: the account is not known, or must not be disclosed. */
  readonly brand: Brand | null;
  /** Whether the address returns the same page again, so that it can be requested in another language. */
  readonly isRepeatable: boolean;
  /** The colour scheme; undefined: the browser's. */
  readonly scheme?: "light" | "dark";
}

/** The content of a page inside its shell. */
export interface View {
  readonly title: string;
  readonly body: Html;
  /** Whether the page is a form, which a script enhances. */
  readonly hasForm?: boolean;
  /** Whether a script moves the page on, which has a button for that without one. */
  readonly isWaiting?: boolean;
}

/** A complete page: it works without scripts and loads nothing from other origins. */
export function renderDocument(shell: Shell, view: View): Html {
  const { wording, base, scheme } = shell;
  const { language } = wording;
  const script = view.hasForm === true ? "form.js" : view.isWaiting === true ? "checking.js" : null;
  return html`<!doctype html>
    <html
      lang="${language}"
      dir="${directionOf(language)}"
      ${scheme !== undefined && html` data-theme="${scheme}"`}
    >
      ${renderHead(
        shell,
        view.title,
        html`${renderIcon(shell)}
        ${scheme !== undefined && html`<link rel="stylesheet" href="${assetPath(base, "frame.css")}" />`}
        ${
          shell.brand?.isTest === true &&
          html`<link rel="stylesheet" href="${assetPath(base, "test-mode.css")}" />`
        }
        ${renderAccent(shell, scheme === undefined ? accentPath : themesPath)}
        ${script !== null && html`<script type="module" src="${assetPath(base, script)}"></script>`}`,
      )}
      <body>
        ${renderContent(shell, view)}
      </body>
    </html>`;
}

/** The head of every page, plus `more`. */
export const renderHead = ({ base }: Shell, title: string, more: Html): Html =>
  html`<head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <meta name="robots" content="noindex" />
    <title>${title}</title>
    <link rel="stylesheet" href="${assetPath(base, "style.css")}" />
    ${more}
  </head>`;

/** The icon in the browser's tab: the customer's image, if there is one. */
export function renderIcon({ base, brand }: Shell): Html {
  const logo = brand?.logo ?? null;
  const path = logo === null ? assetPath(base, "icon.svg") : logoPath(base, logo);
  return html`<link rel="icon" href="${path}" />`;
}

/** The style sheet with the customer's colour. */
export function renderAccent({ base, brand }: Shell, pathOf = accentPath): Html | false {
  const accent = brand?.accentColor ?? null;
  return accent !== null && html`<link rel="stylesheet" href="${pathOf(base, accent)}" />`;
}

/** The parts that pages and frames share. */
export function renderContent({ wording, brand, isRepeatable }: Shell, view: View): Html {
  const isTest = brand?.isTest === true;
  return html`${isRepeatable && renderLanguages(wording)} ${isTest && renderTestNote(wording)}
    <main class="card">${view.body}</main>
    ${isTest && view.hasForm === true && renderTestValues(wording)}
    <footer class="foot">
      ${brand !== null && brand.supportUrl !== null && renderHelp(wording, brand.name, brand.supportUrl)}
      <p>${LOCK} ${wording.texts.foot}</p>
    </footer>`;
}

/** docs/test-mode.md: nobody takes a page of test mode for a real one, or the reverse. */
const renderTestNote = ({ texts }: Wording): Html =>
  html`<p class="test-note" role="note"><strong>TEST · ${texts.test_mode}</strong> ${texts.test_note}</p>`;

/** For developers, so the effects are in English. */
const renderTestValues = ({ texts }: Wording): Html =>
  html`<details class="test-values">
    <summary>${texts.test_values}</summary>
    <dl lang="en" dir="ltr">
      ${Object.entries(TEST_VALUES).map(
        ([value, { effect }]) =>
          html`<dt><code>${value}</code></dt>
            <dd>${effect}</dd>`,
      )}
    </dl>
  </details>`;

/** Links, so that they work without scripts. The chosen language is kept in later URLs. */
function renderLanguages({ language, texts }: Wording): Html {
  const others = LANGUAGES.filter((other) => other !== language);
  return html`<nav class="languages" aria-label="${texts.language}">
    <details>
      <summary>${GLOBE}<span class="unseen">${texts.language}: </span>${LANGUAGE_NAMES[language]}</summary>
      <ul>
        ${others.map((other) => html`<li><a href="?lang=${other}" hreflang="${other}" lang="${other}" dir="${directionOf(other)}">${LANGUAGE_NAMES[other]}</a></li>`)}
      </ul>
    </details>
  </nav>`;
}

/** Opens in a new window, so that entered values are kept. */
function renderHelp(wording: Wording, account: string, url: string): Html {
  return html`<p>
    <a href="${url}" target="_blank" rel="noopener noreferrer">${say(wording, "help", { account })}</a>
  </p>`;
}

/** The tile of a customer. */
export const renderBrandTile = (base: string, { name, logo }: Brand): Html =>
  renderTile(name, logo === null ? null : logoPath(base, logo), "");

/** Who is connected with what, as a decoration above the words that say so. */
export const renderPair = (base: string, brand: Brand, system: string, logo: string | null): Html =>
  html`<div class="pair" aria-hidden="true">
    ${renderBrandTile(base, brand)}<span class="line"></span><span class="badge">${LOCK}</span
    ><span class="line"></span>${renderTile(system, logo, "tile-target")}
  </div>`;

/** An image, or the first letter of the name, as a decoration next to the name. */
export function renderTile(name: string, picture: string | null, style: string): Html {
  return picture === null
    ? html`<span class="tile ${style}">${initial(name)}</span>`
    : html`<span class="tile tile-logo"><img src="${picture}" alt="" width="52" height="52" /></span>`;
}

function initial(name: string): string {
  const [first] = new Intl.Segmenter("en").segment(name.trim());
  return first?.segment.toUpperCase() ?? "";
}

/** Beside words that say what is waited for. */
export const SPINNER = html`<div class="spinner" aria-hidden="true"></div>`;

export const LOCK = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
  <path
    fill="currentColor"
    d="M8 1a3.5 3.5 0 0 0-3.5 3.5V6H4a1.5 1.5 0 0 0-1.5 1.5v6A1.5 1.5 0 0 0 4 15h8a1.5 1.5 0 0 0 1.5-1.5v-6A1.5 1.5 0 0 0 12 6h-.5V4.5A3.5 3.5 0 0 0 8 1Zm2 5H6V4.5a2 2 0 1 1 4 0V6Z"
  />
</svg>`;

export const GLOBE = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
  <path
    fill="none"
    stroke="currentColor"
    d="M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm0 0c4 4 4 9 0 13-4-4-4-9 0-13ZM1.8 6h12.4M1.8 10h12.4"
  />
</svg>`;

/** Beside what is read there. */
export const LINES = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
  <path
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linecap="round"
    d="M2.5 4h11M2.5 8h11M2.5 12h7"
  />
</svg>`;

export const ONWARD = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
  <path
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    d="M2.5 8h10M9 4.5 12.5 8 9 11.5"
  />
</svg>`;
