import type { Brand } from "#domain/branding.ts";
import { textIn, type Language, type LocalText } from "#domain/language.ts";
import { html, type Html } from "#lib/html.ts";
import { assetPath, themesPath } from "#hosted/assets.ts";
import { directionOf, say, type TextKey, type Wording } from "#hosted/texts/texts.ts";
import {
  ONWARD,
  renderAccent,
  renderBrandTile,
  renderContent,
  renderHead,
  renderPair,
  renderTile,
  SPINNER,
  type Shell,
  type View,
} from "./document.ts";
import {
  messageView,
  renderBrand,
  renderTyped,
  sayLimited,
  saySuccess,
  sayTooMany,
  sayWhoHelps,
  type MessageKind,
  type Success,
  type Typed,
} from "./message-pages.ts";

/** The frame script's initial data. Nothing of it is secret. */
export interface FrameStart {
  readonly sessionId: string;
  /** The page that may frame it, and that it talks to. */
  readonly origin: string;
  /** The address for its requests. */
  readonly path: string;
}

/** The page that the widget frames. It shows nothing of the session until its page has sent the client token. */
export function renderFrame(shell: Shell, { sessionId, origin, path }: FrameStart): Html {
  const { wording, base } = shell;
  const { language, texts } = wording;
  return html`<!doctype html>
    <html lang="${language}" dir="${directionOf(language)}">
      ${renderHead(
        shell,
        texts.loading,
        html`<link rel="stylesheet" href="${assetPath(base, "frame.css")}" />
          ${renderAccent(shell, themesPath)}
          <script type="module" src="${assetPath(base, "frame.js")}"></script>`,
      )}
      <body class="framed" data-session="${sessionId}" data-origin="${origin}" data-path="${path}">
        <div id="frame" aria-busy="true">
          <main class="card">
            ${renderBrand(shell)} ${SPINNER}
            <h1 class="waiting">${texts.loading}</h1>
            <div class="ways late">${button("cancel", texts.close)}</div>
          </main>
        </div>
        <noscript><p class="lead">${texts.needs_script}</p></noscript>
        <template id="offline"><main>${endView(shell, "network").body}</main></template>
      </body>
    </html>`;
}

/** A view for the frame, which replaces the previous one. */
export const renderFrameView = (shell: Shell, view: View): Html =>
  html`${renderAccent(shell, themesPath)}${shell.isRepeatable && renderClose(shell.wording)}${renderContent(shell, view)}`;

/** At the top of a dialog; its style hides it elsewhere. */
const renderClose = ({ texts }: Wording): Html =>
  html`<button type="button" class="close" data-does="cancel">
    <span aria-hidden="true">×</span><span class="unseen">${texts.close}</span>
  </button>`;

const button = (does: string, label: Html | string, style: "quiet" | "button" = "quiet"): Html =>
  html`<button type="button" class="${style}" data-does="${does}">${label}</button>`;

/** The exits of a view: back to the picker, and out of the flow (docs/decisions/0019). */
export const renderWays = ({ texts }: Wording, canChoose: boolean): Html =>
  html`<div class="ways">
    ${canChoose && button("pick", texts.choose_other)} ${button("cancel", texts.cancel)}
  </div>`;

/** Where this form stands among those of its Blueprint, and what comes after it. */
export const renderStepOf = (
  wording: Wording,
  {
    number,
    count,
    next,
  }: { readonly number: number; readonly count: number; readonly next: LocalText | null },
): Html | false =>
  count > 1 &&
  html`<p class="step">
    ${say(wording, "step_of", { number: String(number), count: String(count) }, (text) => html`${text}`)}
    ${next !== null && html`· ${say(wording, "next_is", { system: textIn(next, wording.language) })}`}
  </p>`;

export interface Choice {
  readonly key: string;
  readonly name: string;
  /** What the Blueprint needs logins of, with the paths of their logos. */
  readonly systems: readonly {
    readonly name: LocalText;
    /** What is read there. */
    readonly description: LocalText | null;
    readonly logo: string | null;
  }[];
}

/** The picker of Blueprints. */
export function pickerView(
  { wording, base }: Shell,
  page: { readonly brand: Brand; readonly choices: readonly Choice[]; readonly csrf: string },
): View {
  const { texts, language } = wording;
  const body = html`<div class="ask">
      <p class="pair" aria-hidden="true">${renderBrandTile(base, page.brand)}</p>
      <h1>${texts.picker_heading}</h1>
      <p class="lead">${say(wording, "picker_lead", { account: page.brand.name })}</p>
    </div>
    <form class="choices" method="post">
      <input type="hidden" name="_csrf" value="${page.csrf}" />
      ${page.choices.map(
        ({ key, name, systems }) =>
          html`<button type="submit" class="choice" name="blueprint_key" value="${key}">
            <span class="tiles" aria-hidden="true">
              ${systems.map((system) => renderTile(textIn(system.name, language), system.logo, "tile-target"))}
            </span>
            <span class="choice-name">
              <strong><bdi>${name}</bdi></strong>
              <span
                ><bdi
                  >${listOf(
                    wording,
                    systems.map((system) => system.name),
                  )}</bdi
                ></span
              >
              ${describe(systems, language).map((description) => html`<span>${description}</span>`)}
            </span>
            ${ONWARD}
          </button>`,
      )}
      <p class="sending unseen" role="status"></p>
    </form>
    ${renderWays(wording, false)}`;
  return { title: texts.picker_heading, body };
}

/** What is read there, each sentence once. */
const describe = (systems: Choice["systems"], language: Language): readonly string[] => [
  ...new Set(
    systems.flatMap(({ description }) => (description === null ? [] : [textIn(description, language)])),
  ),
];

const listOf = ({ language }: Wording, systems: readonly LocalText[]): string =>
  new Intl.ListFormat(language).format(new Set(systems.map((system) => textIn(system, language))));

/** The address for the window, and the proof that the service issued it. */
export interface AuthorizationRedirect {
  readonly path: string;
  readonly state: string;
  readonly url: string;
  readonly proof: string;
  /** The host of the target's own login, for display. */
  readonly host: string;
  readonly brand: Brand;
  /** What the end user connects, and the path of its logo. */
  readonly system: LocalText;
  readonly logo: string | null;
}

/** Shown while the end user is in the window. The form opens the window even if the browser has blocked the script. */
export function windowView({ wording, base }: Shell, redirect: AuthorizationRedirect): View {
  const system = textIn(redirect.system, wording.language);
  const { texts } = wording;
  const { host } = redirect;
  const body = html`<div class="ask">
      ${renderPair(base, redirect.brand, system, redirect.logo)}
      <h1>
        <span class="if-open">${texts.window_heading}</span>
        <span class="if-blocked" hidden>${say(wording, "connect_title", { system })}</span>
      </h1>
      <p class="lead if-open">${say(wording, "window_lead", { host })}</p>
      <p class="lead if-blocked" role="alert" hidden>${texts.window_blocked}</p>
    </div>
    <form class="leave" method="post" action="${redirect.path}" target="_blank" rel="opener">
      <input type="hidden" name="state" value="${redirect.state}" />
      <input type="hidden" name="url" value="${redirect.url}" />
      <input type="hidden" name="proof" value="${redirect.proof}" />
      <button type="submit">
        <span class="if-open">${texts.window_again}</span>
        <span class="if-blocked" hidden>${say(wording, "window_open", { host })}</span>
      </button>
    </form>
    <div class="ways">${button("again", texts.start_over)} ${button("cancel", texts.cancel)}</div>`;
  return { title: texts.window_heading, body };
}

export function successView(
  wording: Wording,
  { account, systems, how }: Omit<Success, "system"> & { readonly systems: readonly LocalText[] },
): View {
  const [kind, heading, ...said] = saySuccess(wording, {
    account,
    how,
    system: listOf(wording, systems),
  });
  const view = messageView(kind, heading, ...said, say(wording, "go_on", { account }));
  const ways = html`<div class="ways">${button("done", wording.texts.done, "button")}</div>`;
  return { ...view, body: html`${view.body} ${ways}` };
}

/** The target has refused so many logins that no further one is tried for a while. */
export function limitedView(shell: Shell, system: LocalText, closedMs: number): View {
  const { wording } = shell;
  const view = messageView(...sayLimited(wording, textIn(system, wording.language), closedMs));
  return withWays(shell, view, [button("cancel", wording.texts.close, "button")]);
}

const withWays = (shell: Shell, view: View, ways: readonly Html[]): View => ({
  ...view,
  body: html`${renderBrand(shell)} ${view.body}
    <div class="ways">${ways}</div>`,
});

/** The ends of a flow, by the code that its page receives. */
const ENDS = {
  session_expired: ["late", "frame_expired_heading", "frame_expired"],
  session_used: ["over", "frame_used_heading", "frame_used"],
  too_many_attempts: ["late", "frame_limit_heading", "frame_limit"],
  internal: ["notice", "frame_unknown_heading", "frame_unknown"],
  failed: ["notice", "problem_heading", "frame_problem"],
  network: ["notice", "offline_heading", "offline"],
} as const satisfies Record<string, readonly [MessageKind, TextKey, TextKey]>;

/** `too_often`: too many forms came in a short time, and a later one is taken. */
export type FrameEnd = keyof typeof ENDS | "too_often";

const PASSING: ReadonlySet<FrameEnd> = new Set(["network", "failed", "too_often"]);

/** How a flow has ended, with its sender where it is known. `waitMs`: after how long another form is taken. */
export function endView(
  shell: Shell,
  end: FrameEnd,
  { typed = [], waitMs = 0 }: { readonly typed?: readonly Typed[]; readonly waitMs?: number } = {},
): View {
  const { wording } = shell;
  const { texts } = wording;
  const isPassing = PASSING.has(end);
  const view = messageView(...sayEnd(shell, end, waitMs));
  const body = html`${view.body} ${renderTyped(wording, typed)}`;
  return withWays(shell, { ...view, body }, [
    ...(isPassing ? [button("again", texts.try_again, "button")] : []),
    button("cancel", texts.close, isPassing ? "quiet" : "button"),
  ]);
}

function sayEnd(shell: Shell, end: FrameEnd, waitMs: number): Parameters<typeof messageView> {
  const { texts } = shell.wording;
  if (end === "too_often") return [...sayTooMany(shell.wording, waitMs)];
  const [kind, heading, text] = ENDS[end];
  // The script removes this where there is no form.
  const kept = end === "network" ? [html`<span class="of-form">${texts.offline_kept}</span>`] : [];
  const helps = end === "internal" || end === "failed" ? sayWhoHelps(shell) : [];
  return [kind, texts[heading], texts[text], ...kept, ...helps];
}
