import type { Brand } from "#domain/branding.ts";
import { LANGUAGES } from "#domain/language.ts";
import { html, type Html } from "#lib/html.ts";
import { accentPath, assetPath, logoPath } from "#hosted/assets.ts";
import { directionOf, say, type Tongue } from "#hosted/texts/texts.ts";
import { LANGUAGE_NAMES } from "#hosted/texts/tongues.ts";

/** What is around every view. */
export interface Shell {
  readonly tongue: Tongue;
  /** The path of the pages, as the browser knows it: `/connect`. */
  readonly base: string;
  /** null: whose page it would be is not known, or not to be told. */
  readonly brand: Brand | null;
  /** Whether the address gives the same page again, so that it can be had in another language. */
  readonly isRepeatable: boolean;
}

/** What a page shows inside of its shell. */
export interface View {
  readonly title: string;
  readonly body: Html;
  /** Whether it is a form, which script improves. */
  readonly hasForm?: boolean;
}

/** A whole page: complete without script, and nothing of it from elsewhere. */
export function renderDocument(shell: Shell, view: View): Html {
  const { tongue, base } = shell;
  const { language } = tongue;
  return html`<!doctype html>
    <html lang="${language}" dir="${directionOf(language)}">
      ${renderHead(
        shell,
        view.title,
        html`${renderIcon(shell)} ${renderAccent(shell)}
        ${view.hasForm === true && html`<script type="module" src="${assetPath(base, "form.js")}"></script>`}`,
      )}
      <body>
        ${renderContent(shell, view)}
      </body>
    </html>`;
}

/** What every page of ours has in its head, and `more`. */
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

/** In the browser's tab: the customer's picture, where there is one, and never ours beside it. */
export function renderIcon({ base, brand }: Shell): Html {
  const logo = brand?.logo ?? null;
  const path = logo === null ? assetPath(base, "icon.svg") : logoPath(base, logo);
  return html`<link rel="icon" href="${path}" />`;
}

/** The customer's colour. */
export function renderAccent({ base, brand }: Shell, pathOf = accentPath): Html | false {
  const accent = brand?.accentColor ?? null;
  return accent !== null && html`<link rel="stylesheet" href="${pathOf(base, accent)}" />`;
}

/** What is on a page, and in a frame. */
export function renderContent({ tongue, brand, isRepeatable }: Shell, view: View): Html {
  return html`${isRepeatable && renderLanguages(tongue)}
    <main class="card">${view.body}</main>
    <footer class="foot">
      ${brand !== null && brand.supportUrl !== null && renderHelp(tongue, brand.name, brand.supportUrl)}
      <p>${LOCK} ${tongue.texts.foot}</p>
    </footer>`;
}

/** Links, so that they work without script. A language stays chosen in the addresses that follow. */
function renderLanguages({ language, texts }: Tongue): Html {
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

/** In a window of its own: what was typed here stays. */
function renderHelp(tongue: Tongue, account: string, url: string): Html {
  return html`<p>
    <a href="${url}" target="_blank" rel="noopener noreferrer">${say(tongue, "help", { account })}</a>
  </p>`;
}

/** A customer's picture, or the first letter of a name; decoration beside the name itself. */
export function renderTile(base: string, name: string, logo: string | null, style: string): Html {
  return logo === null
    ? html`<span class="tile ${style}">${initial(name)}</span>`
    : html`<span class="tile tile-logo"
        ><img src="${logoPath(base, logo)}" alt="" width="52" height="52"
      /></span>`;
}

function initial(name: string): string {
  const [first] = new Intl.Segmenter("en").segment(name.trim());
  return first?.segment.toUpperCase() ?? "";
}

export const LOCK = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
  <path
    fill="currentColor"
    d="M8 1a3.5 3.5 0 0 0-3.5 3.5V6H4a1.5 1.5 0 0 0-1.5 1.5v6A1.5 1.5 0 0 0 4 15h8a1.5 1.5 0 0 0 1.5-1.5v-6A1.5 1.5 0 0 0 12 6h-.5V4.5A3.5 3.5 0 0 0 8 1Zm2 5H6V4.5a2 2 0 1 1 4 0V6Z"
  />
</svg>`;

const GLOBE = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
  <path
    fill="none"
    stroke="currentColor"
    d="M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm0 0c4 4 4 9 0 13-4-4-4-9 0-13ZM1.8 6h12.4M1.8 10h12.4"
  />
</svg>`;
