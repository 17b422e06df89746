import { html, type Html } from "#lib/html.ts";
import { assetPath } from "#hosted/assets.ts";
import { directionOf } from "#hosted/texts/texts.ts";
import { renderAccent, renderContent, renderHead, renderIcon, SPINNER, type Shell } from "./document.ts";
import { messageView, renderBrand } from "./message-pages.ts";

/** The pages of a window that a frame has opened, with their scripts. */
const renderWindowDocument = (shell: Shell, title: string, script: string | null, body: Html): Html => {
  const { language } = shell.wording;
  return html`<!doctype html>
    <html lang="${language}" dir="${directionOf(language)}">
      ${renderHead(
        shell,
        title,
        html`${renderIcon(shell)} ${renderAccent(shell)}
        ${script !== null && html`<script type="module" src="${assetPath(shell.base, script)}"></script>`}`,
      )}
      <body>
        ${renderContent({ ...shell, isRepeatable: false }, { title, body })}
      </body>
    </html>`;
};

/** After the return from the target. It closes itself if possible. */
export function renderWindow(shell: Shell, kind: "done" | "notice", heading: string): Html {
  const { texts } = shell.wording;
  const message = messageView(kind, heading, kind === "done" ? texts.window_back : texts.window_refused);
  const body = html`${renderBrand(shell)} ${message.body}`;
  return renderWindowDocument(shell, heading, kind === "done" ? "window.js" : null, body);
}

/** Shown until the URL is known. A window that is severed from its frame is useless, and closes itself if possible. */
export function renderOpening(shell: Shell): Html {
  const { texts } = shell.wording;
  const cutOff = messageView("notice", texts.window_cut_off_heading, texts.window_cut_off, texts.window_back);
  const body = html`<div class="until">
      ${SPINNER}
      <h1 class="waiting">${texts.window_opening}</h1>
    </div>
    <div class="cut-off" hidden>${cutOff.body}</div>`;
  return renderWindowDocument(shell, texts.window_opening, "opening.js", body);
}
