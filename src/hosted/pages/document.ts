import { html, type Html } from "#lib/html.ts";

/** Relative to the page, which is `<public url>/connect/<token>`, so that it is right whatever path the public URL has. */
const STYLE = "style.css";

/** A whole page. No script, nothing from elsewhere: the content security policy allows only the style sheet. */
export function renderDocument(title: string, body: Html): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>${title}</title>
        <link rel="stylesheet" href="${STYLE}" />
      </head>
      <body>
        <main class="card">${body}</main>
        <footer class="foot">${LOCK} Secure connection page by Latchkey</footer>
      </body>
    </html>`;
}

export const LOCK = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
  <path
    fill="currentColor"
    d="M8 1a3.5 3.5 0 0 0-3.5 3.5V6H4a1.5 1.5 0 0 0-1.5 1.5v6A1.5 1.5 0 0 0 4 15h8a1.5 1.5 0 0 0 1.5-1.5v-6A1.5 1.5 0 0 0 12 6h-.5V4.5A3.5 3.5 0 0 0 8 1Zm2 5H6V4.5a2 2 0 1 1 4 0V6Z"
  />
</svg>`;
