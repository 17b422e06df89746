import { html, type Html, type HtmlPart } from "#lib/html.ts";
import { plainText, say, type TextKey, type Texts, type Wording } from "#hosted/texts/texts.ts";
import { renderDocument, renderBrandTile, type Shell, type View } from "./document.ts";

/**
 * `kept`: it is stored, and nobody has tried it. `over`: nothing went wrong, and nothing is left to do here. `told`: neither good nor bad.
 * `late`: its time is over, or has not come.
 */
export type MessageKind = "done" | "kept" | "over" | "told" | "late" | "notice";

/** The pages without a form: the outcome, and the next step. They disclose nothing that the end user does not already know. */
export function messageView(kind: MessageKind, heading: string, ...paragraphs: readonly HtmlPart[]): View {
  return {
    title: heading,
    body: html`${renderSign(kind)}
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

const renderAgain = (shell: Shell, again: string, back: string | null): Html =>
  html`<p class="way"><a class="button" href="${again}">${shell.wording.texts.open_again}</a></p>
    ${renderBack(shell, back, "quiet")}`;

function renderSign(kind: MessageKind): Html {
  const [style, path] = SIGNS[kind];
  return html`<div class="sign ${style}" aria-hidden="true">
    <svg viewBox="0 0 24 24">
      <path
        fill="none"
        stroke="currentColor"
        stroke-width="2.25"
        stroke-linecap="round"
        stroke-linejoin="round"
        d="${path}"
      />
    </svg>
  </div>`;
}

const CHECK = "m5 12.5 4.5 4.5L19 7.5";
const SIGNS = {
  done: ["sign-done", CHECK],
  kept: ["", "M7 11V8a5 5 0 0 1 10 0v3M6 11h12v9H6Z"],
  over: ["", CHECK],
  told: ["", "M12 11v6.5M12 6.5v.01"],
  late: ["sign-heed", "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM12 7.5V12l3 2"],
  notice: ["sign-heed", "M12 6v7.5M12 18v.01"],
} as const satisfies Record<MessageKind, readonly [style: string, path: string]>;

export const renderBrand = ({ base, brand }: Shell): Html | false =>
  brand !== null &&
  html`<p class="pair brand">
    <span aria-hidden="true">${renderBrandTile(base, brand)}</span><bdi>${brand.name}</bdi>
  </p>`;

/** By its name, as everywhere on the page; its address is seen once the link is followed. */
const renderBack = (
  { wording, brand }: Shell,
  back: string | null,
  style: "button" | "quiet" = "button",
): Html | false =>
  back !== null &&
  html`<p class="way">
    <a class="${style}" href="${back}"
      >${say(wording, "back_to", { account: brand?.name ?? new URL(back).host })}</a
    >
  </p>`;

/**
 * What was connected, and how. `signed_in`: at the target itself. `accepted`, `unanswered`: what the target said to a login that was typed.
 * `stored`: a login that was typed was received, not tested (spec, Credential session rule 1).
 */
export interface Success {
  readonly account: string;
  readonly system: string;
  readonly how: "signed_in" | "accepted" | "unanswered" | "stored";
}

/** After a submit without a `return_url`. */
export function renderSuccess(
  shell: Shell,
  { back = null, ...success }: Success & { readonly back?: string | null },
): Html {
  // With a way back, that is what to do next.
  const next = back === null ? [shell.wording.texts.close_now] : [];
  return renderMessage(shell, { back }, ...saySuccess(shell.wording, success), ...next);
}

/** The sign, the heading, and what there is to know. */
export function saySuccess(
  wording: Wording,
  { account, system, how }: Success,
): readonly [kind: MessageKind, heading: string, ...HtmlPart[]] {
  const sayStrong = (key: TextKey): HtmlPart => say(wording, key, { account, system }, strong);
  if (how === "signed_in" || how === "accepted") {
    const said = sayStrong(how === "accepted" ? "accepted" : "connected_how");
    return ["done", plainText(wording, "connected", { system }), said];
  }
  const kept = [sayStrong("success"), sayStrong("success_again")];
  const said = how === "unanswered" ? [sayStrong("unanswered"), ...kept] : kept;
  return ["kept", wording.texts.success_heading, ...said];
}

/** 429: the target has refused so many logins of this session that no further one is tried for a while. */
export const renderLimited = (shell: Shell, system: string, closedMs: number, ways: Ways): Html =>
  renderMessage(shell, ways, ...sayLimited(shell.wording, system, closedMs));

/** The sign, the heading, and when the next one is taken. */
export const sayLimited = (
  wording: Wording,
  system: string,
  closedMs: number,
): readonly [kind: MessageKind, heading: string, ...HtmlPart[]] => [
  "late",
  plainText(wording, "limited_heading", { system }),
  say(wording, "limited", { system }),
  sayWhen(wording, closedMs),
];

const MINUTE_MS = 60_000;

/** In seconds up to a minute, otherwise in minutes; never earlier than it is true. */
function sayWhen(wording: Wording, ms: number): HtmlPart {
  const format = new Intl.RelativeTimeFormat(wording.language);
  const when =
    ms < MINUTE_MS
      ? format.format(Math.max(Math.ceil(ms / 1_000), 1), "second")
      : format.format(Math.ceil(ms / MINUTE_MS), "minute");
  return say(wording, "again_when", { when }, strong);
}

const strong = (text: string): Html => html`<strong><bdi>${text}</bdi></strong>`;

/** A page whose text is fixed, apart from its language. */
const plain =
  (
    kind: MessageKind,
    heading: keyof Texts & `${string}_heading`,
    ...rest: readonly Exclude<keyof Texts, "issues">[]
  ) =>
  (shell: Shell, ways: Ways = {}): Html =>
    renderMessage(
      shell,
      ways,
      kind,
      shell.wording.texts[heading],
      ...rest.map((key) => shell.wording.texts[key]),
    );

/** 410: the session is completed. */
export const renderUsed = (shell: Shell, ways: Ways = {}): Html =>
  renderMessage(
    shell,
    ways,
    // Whether it was this person is not known.
    "told",
    shell.wording.texts.used_heading,
    shell.wording.texts.used,
    ofSender(shell, "used_other"),
  );

/** With the sender's name where the link tells it. */
const ofSender = ({ wording, brand }: Shell, key: "used_other" | "ask_again"): HtmlPart =>
  brand === null ? wording.texts[key] : say(wording, `${key}_of`, { account: brand.name }, strong);

/** Who helps if trying again does not; nobody where the sender is not known. */
export const sayWhoHelps = ({ wording, brand }: Pick<Shell, "wording" | "brand">): readonly HtmlPart[] =>
  brand === null ? [] : [say(wording, "failed_again", { account: brand.name }, strong)];

/** 404: no session has this token. */
export const renderUnknown = plain("notice", "unknown_heading", "unknown", "unknown_next");

/** 400: the `state` belongs to no sign-in of this browser. */
export const renderSignInUnknown = plain("notice", "return_heading", "return_unknown", "return_next");

/** 400: this browser has come back with the `state` before. */
export const renderSignInSpent = plain("notice", "return_heading", "return_spent", "return_next");

/** 403: the submit did not come from the service's form. */
export const renderForbidden = plain("notice", "forbidden_heading", "forbidden", "forbidden_next");

/** 413. `field`: the label of what was too large; null: not known. */
export function renderTooLarge(shell: Shell, field: string | null, ways: Ways = {}): Html {
  const { texts } = shell.wording;
  const said = field === null ? texts.too_large : say(shell.wording, "too_large_of", { field }, strong);
  return renderMessage(shell, ways, "notice", texts.too_large_heading, said, texts.too_large_next);
}

/** 429: too many forms were sent, from one link or from one address, or too many logins are tried. */
export const renderTooMany = (shell: Shell, waitMs: number, ways: Ways = {}): Html =>
  renderMessage(shell, ways, ...sayTooMany(shell.wording, waitMs));

export const sayTooMany = (
  wording: Wording,
  waitMs: number,
): readonly [kind: MessageKind, heading: string, ...HtmlPart[]] => [
  "late",
  wording.texts.frame_limit_heading,
  wording.texts.too_often,
  sayWhen(wording, waitMs),
];

/** What became of a form that ended in a fault. `unknown`: the fault came while it was being saved, and its session can't be read. */
export type Fate = "nothing" | "saved" | "unknown";

/** 500 and 503. */
export function renderProblem(shell: Shell, fate: Fate, ways: Ways = {}): Html {
  const { texts } = shell.wording;
  if (fate === "saved")
    return renderMessage(shell, { ...ways, again: null }, "kept", texts.problem_heading, texts.problem_done);
  const said = {
    nothing: [texts.problem_nothing, texts.problem, ...sayWhoHelps(shell)],
    unknown: [texts.problem, texts.problem_saved, ...sayWhoHelps(shell)],
  }[fate];
  return renderMessage(shell, ways, "notice", texts.problem_heading, ...said);
}

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
    body: html`${renderBrand(shell)} ${renderSign("late")}
      <h1>${texts.expired_heading}</h1>
      <p class="lead">${texts.expired}</p>
      <p class="lead">${ofSender(shell, "ask_again")}</p>
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
