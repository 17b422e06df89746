// The frame of an embedded flow. It shows what the service renders, sends entered values only to the service, and reports only
// codes and ids to its page. The client token is only in this script's memory. docs/decisions/0019.
import { improveForm, typedIn } from "./form.ts";
import { listen, post, pageOrigin, isModal } from "./frame-messages.ts";
import type { Completed, Failure, View } from "./widget-types.ts";

const POLL_MS = 1_500;
const EXPIRY_SLACK_MS = 500;
const WINDOW = "popup,width=520,height=720";

/** An answer of the service. */
interface Answer {
  readonly view: View;
  readonly html: string;
  readonly title: string;
  readonly language: string;
  readonly direction: string;
  /** Shown when a request gets no answer. */
  readonly offline: string;
  readonly blueprint_selected?: string;
  readonly field_error?: string[];
  readonly error?: Failure;
  readonly completed?: Completed;
  readonly expires_in_ms?: number;
}

interface TypePolicy {
  createHTML(html: string): string;
}
declare const trustedTypes:
  | { createPolicy(name: string, rules: { createHTML(html: string): string }): TypePolicy }
  | undefined;

// The only place where HTML is inserted into the page; all of it comes from our own service.
const rules = { createHTML: (html: string): string => html };
const policy: TypePolicy =
  typeof trustedTypes === "undefined" ? rules : trustedTypes.createPolicy("latchkey", rules);

const place = document.querySelector<HTMLElement>("#frame") as HTMLElement;
const path = document.body.dataset["path"] ?? "";

/** `pt-BR` becomes `pt`. */
const baseOf = (locale: string): string => locale.split("-", 1)[0]?.toLowerCase() ?? "";

let token = "";
let language = baseOf(new URLSearchParams(location.search).get("lang") ?? "");
let view: View | null = null;
/** Shown when a request gets no answer: at first the page's own. */
let offline = document.querySelector("#offline")?.innerHTML ?? "";
let attempts = 0;
let isBusy = false;
let isOver = false;
/** Whether this frame has submitted something: then `completed` is its own result. */
let isOwn = false;
let watched = 0;
/** What was typed last and is not secret, for the form after a login that the target refused. */
let kept = new URLSearchParams();
let expiry = 0;
/** Who asks, as the frame said at first: an answer that can't tell, such as one of a fault, is shown below it. */
const sender = place.querySelector(".brand");

async function ask(step: string, body: URLSearchParams | FormData, query = ""): Promise<Answer | null> {
  try {
    const response = await fetch(`${path}/${step}?lang=${encodeURIComponent(language)}${query}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}` },
      body,
      // No cookie, whether or not the browser would send one from a frame.
      credentials: "omit",
      cache: "no-store",
    });
    return (await response.json()) as Answer;
  } catch {
    return null;
  }
}

/** Sends one request at a time and shows the answer. */
async function take(
  step: string,
  body: URLSearchParams | FormData = new URLSearchParams(),
  query = "",
): Promise<Answer | null> {
  if (isBusy || isOver) return null;
  isBusy = true;
  place.setAttribute("aria-busy", "true");
  const answer = await ask(step, body, query);
  isBusy = false;
  place.removeAttribute("aria-busy");
  if (isOver) return null;
  if (answer) show(answer);
  else showOffline();
  return answer;
}

function show(answer: Answer): void {
  watched++;
  ({ offline } = answer);
  language = answer.language;
  document.documentElement.lang = answer.language;
  document.documentElement.dir = answer.direction;
  document.title = answer.title;
  const isFirst = view === null;
  render(answer.html, !isFirst);
  const isOther = view !== answer.view;
  view = answer.view;
  if (answer.blueprint_selected !== undefined)
    post("blueprint_selected", { blueprint_key: answer.blueprint_selected });
  if (isFirst) post("opened", { view });
  else if (isOther) post("view_changed", { view });
  if (answer.field_error) post("field_error", { fields: answer.field_error });
  if (answer.error?.code === "session_expired") post("expired", {});
  if (answer.error) post("error", answer.error);
  expireIn(answer.expires_in_ms);
  if (answer.completed) complete(answer.completed);
  if (view === "verifying") void follow();
}

/** Asks for the outcome of a login that is being tried. Each answer waits for it for a while. */
async function follow(): Promise<void> {
  const mine = watched;
  const slot = place.querySelector<HTMLElement>("[data-slot]")?.dataset["slot"] ?? "";
  for (;;) {
    const answer = await ask("check", kept, `&slot=${encodeURIComponent(slot)}`);
    if (mine !== watched || isOver) return;
    if (answer && "view" in answer) return show(answer);
    if (!answer) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Sent once, as the last message. */
function complete(completed: Completed): void {
  tellHeight();
  isOver = true;
  post("completed", completed);
}

function showOffline(): void {
  post("error", { code: "network", message: "The service could not be reached.", recoverable: true });
  const form = place.querySelector("form.connect");
  // Entered values stay in place.
  if (form) form.dispatchEvent(new Event("again"));
  const wasShown = place.querySelector(".offline, .unreachable");
  if (wasShown || offline === "") return;
  const note = document.createElement("div");
  note.className = form ? "offline" : "unreachable";
  note.setAttribute("role", "alert");
  note.innerHTML = policy.createHTML(offline) as string;
  const said = note.querySelector("main");
  if (!said) return;
  if (form) for (const part of said.querySelectorAll(".ways, .brand")) part.remove();
  else said.querySelector(".of-form")?.parentElement?.remove();
  note.replaceChildren(...said.childNodes);
  // Where it was sent from, which is where the person looks.
  if (form) form.querySelector("button[type=submit]")?.before(note);
  else place.querySelector("main")?.replaceChildren(note);
  listenToButtons(note);
}

function render(html: string, moveFocus: boolean): void {
  place.innerHTML = policy.createHTML(html) as string;
  if (sender && !place.querySelector(".pair")) place.querySelector("main")?.prepend(sender.cloneNode(true));
  const form = place.querySelector<HTMLFormElement>("form.connect");
  if (form) {
    improveForm(form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (isByPerson(event)) void send(form);
    });
  }
  const choices = place.querySelector<HTMLFormElement>("form.choices");
  choices?.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!isByPerson(event)) return;
    const chosen = new FormData(choices, event.submitter);
    void take("choose", new URLSearchParams([...chosen] as [string, string][]));
  });
  const leave = place.querySelector<HTMLFormElement>("form.leave");
  leave?.addEventListener("submit", () => {
    post("oauth_opened", {});
    showBlocked(leave, false);
  });
  for (const link of place.querySelectorAll<HTMLAnchorElement>(".languages a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      speak(link.hreflang);
    });
  }
  listenToButtons(place);
  const first = place.querySelector<HTMLElement>(".summary") ?? place.querySelector<HTMLElement>("h1");
  if (!first || !(moveFocus || isModal)) return;
  first.tabIndex = -1;
  first.focus({ preventScroll: !moveFocus });
}

/** Whether a person caused the event, in this frame. */
const isByPerson = (event: Event): boolean =>
  event.isTrusted && (!("userActivation" in navigator) || navigator.userActivation.hasBeenActive);

function listenToButtons(within: HTMLElement): void {
  for (const button of within.querySelectorAll<HTMLButtonElement>("button[data-does]")) {
    button.addEventListener("click", () => {
      const does = button.dataset["does"];
      if (does === "cancel") exit("cancelled");
      // After `completed`, which is the last event, the widget takes the frame away without a word.
      if (does === "done") post("exited", { at_view: view, reason: "closed" });
      if (does === "pick") void take("view", new URLSearchParams({ _pick: "1" }));
      if (does === "again") void refresh();
    });
  }
}

async function refresh(): Promise<void> {
  const body = typed();
  if (isOwn) body.set("_own", "1");
  await take("view", body);
}

/** The form's values that are not secret, which are restored in another language. */
function typed(): URLSearchParams {
  const form = place.querySelector<HTMLFormElement>("form.connect");
  return new URLSearchParams(form ? typedIn(form.elements) : []);
}

function speak(locale: string): void {
  language = baseOf(locale);
  if (view !== "oauth") void refresh();
}

async function send(form: HTMLFormElement): Promise<void> {
  if (isBusy || isOver) return;
  isOwn = true;
  kept = typed();
  post("submitted", { attempt: ++attempts });
  // Opened now, while the click allows it; its URL is known later.
  const name = `latchkey-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  const leaves = form.dataset["leaves"] !== undefined;
  // A page of ours, which closes itself when the page around this frame has severed the connection to it.
  const opening = `${path}/opening?lang=${encodeURIComponent(language)}`;
  const opened = leaves ? window.open(opening, name, WINDOW) : null;
  const content = new FormData(form);
  const isMultipart = form.enctype === "multipart/form-data";
  const body = isMultipart ? content : new URLSearchParams([...content] as [string, string][]);
  const answer = await take("submit", body, `&slot=${encodeURIComponent(form.dataset["slot"] ?? "")}`);
  const leave = place.querySelector<HTMLFormElement>("form.leave");
  if (answer?.view !== "oauth" || !leave) {
    opened?.close();
    return;
  }
  if (opened) {
    leave.target = name;
    leave.submit();
    post("oauth_opened", {});
  } else {
    post("popup_blocked", {});
    post("error", {
      code: "popup_blocked",
      message: "The browser blocked the window. The frame shows a button for it.",
      recoverable: true,
    });
  }
  showBlocked(leave, opened === null);
  void watch(leave, opened);
}

function showBlocked(leave: HTMLFormElement, isBlocked: boolean): void {
  const main = leave.closest("main");
  for (const part of main?.querySelectorAll<HTMLElement>(".if-open") ?? []) part.hidden = isBlocked;
  for (const part of main?.querySelectorAll<HTMLElement>(".if-blocked") ?? []) part.hidden = !isBlocked;
}

/** The result arrives through the service, because the page in the window may sever the connection to this frame. */
async function watch(leave: HTMLFormElement, opened: Window | null): Promise<void> {
  const mine = watched;
  const state = leave.querySelector<HTMLInputElement>("[name=state]")?.value ?? "";
  let isOpen = opened !== null;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (mine !== watched || isOver) return;
    if (isOpen && opened?.closed === true) {
      isOpen = false;
      post("oauth_closed", {});
    }
    if (isBusy) continue;
    const answer = await ask("sign-in", new URLSearchParams({ state }));
    if (mine !== watched || isOver) return;
    if (answer && "view" in answer) {
      if (isOpen) post("oauth_closed", {});
      opened?.close();
      return show(answer);
    }
  }
}

/** A value that was just being entered is shown again, so that it can be copied. */
function expireIn(ms: number | undefined): void {
  clearTimeout(expiry);
  if (ms !== undefined) expiry = window.setTimeout(() => void refresh(), Math.max(ms, 0) + EXPIRY_SLACK_MS);
}

function exit(reason: "cancelled" | "closed" | "escape"): void {
  if (isOver) return;
  isOver = true;
  post("exited", { at_view: view, reason });
}

function setTheme(theme: unknown): void {
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
  else delete document.documentElement.dataset["theme"];
}

let lastHeight = 0;
function tellHeight(): void {
  const height = Math.ceil(document.body.getBoundingClientRect().height);
  if (isOver || height === lastHeight) return;
  lastHeight = height;
  post("resize", { height });
}

if (pageOrigin !== null) {
  document.body.classList.toggle("modal", isModal);
  listen((type, payload) => {
    if (type === "init" && token === "" && typeof payload["client_token"] === "string") {
      token = payload["client_token"];
      if (typeof payload["locale"] === "string") language = baseOf(payload["locale"]);
      setTheme(payload["theme"]);
      void take("view");
    }
    if (token === "") return;
    if (type === "close") exit("closed");
    if (type === "update_theme") setTheme(payload["theme"]);
    if (type === "set_locale" && typeof payload["locale"] === "string") speak(payload["locale"]);
  });
  new ResizeObserver(tellHeight).observe(document.body);
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isModal && !event.defaultPrevented) exit("escape");
  });
  listenToButtons(place);
  post("ready", {});
}
