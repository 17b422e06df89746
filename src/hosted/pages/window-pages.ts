import { html, type Html } from "#lib/html.ts";
import { assetPath } from "#hosted/assets.ts";
import { directionOf, plainText, type Wording } from "#hosted/texts/texts.ts";
import { renderAccent, renderContent, renderHead, renderIcon, SPINNER, type Shell } from "./document.ts";
import { messageView, renderBrand } from "./message-pages.ts";

/** The pages of a window that a frame has opened, with their scripts. */
const renderWindowDocument = (shell: Shell, title: string, script: string, body: Html): Html => {
  const { language } = shell.wording;
  return html`<!doctype html>
    <html lang="${language}" dir="${directionOf(language)}">
      ${renderHead(
        shell,
        title,
        html`${renderIcon(shell)} ${renderAccent(shell)}
          <script type="module" src="${assetPath(shell.base, script)}"></script>`,
      )}
      <body>
        ${renderContent({ ...shell, isRepeatable: false }, { title, body })}
      </body>
    </html>`;
};

/** Shown by script, which can close what a script has opened. */
const renderClose = ({ texts }: Wording): Html =>
  html`<p class="way"><button type="button" class="button" hidden>${texts.close_window}</button></p>`;

/** How a sign-in at the target has ended: `refused` by the end user, or `failed` for a technical reason. */
export type WindowEnd = "done" | "refused" | "failed";

/** After the return from the target. If all is done, it closes itself if possible. */
export function renderWindow(shell: Shell, end: WindowEnd, system: string): Html {
  const { wording } = shell;
  const { texts } = wording;
  const heading = {
    done: plainText(wording, "connected", { system }),
    refused: plainText(wording, "not_connected", { system }),
    failed: texts.failed_heading,
  }[end];
  const said = {
    done: [texts.window_back],
    refused: [texts.window_refused, texts.window_retry],
    failed: [texts.window_failed, texts.window_retry],
  }[end];
  const message = messageView(end === "done" ? "done" : "notice", heading, ...said);
  const body = html`${renderBrand(shell)} ${message.body} ${renderClose(wording)}`;
  return renderWindowDocument(shell, heading, end === "done" ? "window.js" : "closable.js", body);
}

/** Shown until the URL is known. A window that is severed from its frame is useless, and closes itself if possible. */
export function renderOpening(shell: Shell): Html {
  const { wording } = shell;
  const { texts } = wording;
  const cutOff = messageView("told", texts.window_cut_off_heading, texts.window_cut_off, texts.window_back);
  const body = html`${renderBrand(shell)}
    <div class="until">
      ${SPINNER}
      <h1 class="waiting">${texts.window_opening}</h1>
    </div>
    <div class="cut-off" hidden>${cutOff.body} ${renderClose(wording)}</div>`;
  return renderWindowDocument(shell, texts.window_opening, "opening.js", body);
}
