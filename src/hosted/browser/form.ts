// Enhancements of the hosted form, which also works without scripts. Served without its types and comments but otherwise
// unchanged, so it is limited to ES2020 for old phones. Texts come from the page, in its language.

const all = <T extends HTMLElement>(selector: string, within: ParentNode = document): T[] => [
  ...within.querySelectorAll<T>(selector),
];

function add<K extends keyof HTMLElementTagNameMap>(
  parent: Element,
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  parent.append(element);
  return element;
}

const form = document.querySelector<HTMLFormElement>("form.connect");
if (form) {
  improveForm(form);
  document.querySelector<HTMLElement>(".summary")?.focus();
  for (const link of all<HTMLAnchorElement>(".languages a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      askAgain(form, link);
    });
  }
}

/** The same form in another language, with the entered values that are not secret, which the link alone would lose. */
function askAgain({ action, enctype, elements }: HTMLFormElement, link: HTMLAnchorElement): void {
  const again = document.createElement("form");
  Object.assign(again, {
    method: "post",
    action: action.replace(/\?.*|$/, link.search),
    enctype,
    hidden: true,
  });
  const csrf = (elements.namedItem("_csrf") as HTMLInputElement).value;
  const values = [["_csrf", csrf], ["_again", "1"], ...typedIn(elements)] as const;
  for (const [name, value] of values) add(again, "textarea", { name, value });
  document.body.append(again);
  again.submit();
}

/** The values of a form's controls that are not secret. */
export function typedIn(elements: HTMLFormControlsCollection): [string, string][] {
  return [...elements].flatMap((control): [string, string][] => {
    if (control instanceof HTMLSelectElement) return [[control.name, control.value]];
    if (!(control instanceof HTMLInputElement || control instanceof HTMLTextAreaElement)) return [];
    const isPlain = ["text", "email", "url", "textarea", "checkbox"].includes(control.type);
    // A secret that is shown has a plain control as well.
    if (!isPlain || control.closest(".secret, .rows, .totp") !== null || control.name === "") return [];
    const isUnchecked =
      control instanceof HTMLInputElement && control.type === "checkbox" && !control.checked;
    return isUnchecked ? [] : [[control.name, control.value]];
  });
}

/** In a frame this runs each time that a form is shown. */
export function improveForm(form: HTMLFormElement): void {
  const say = (key: string): string => form.dataset[key] ?? "";
  all(".secret", form).forEach((place) => addPeek(place, say));
  all(".rows", form).forEach((place) => arrangeRows(place, say));
  all(".totp", form).forEach((place) => addPicture(place, say));
  sendOnce(form, say);
}

type Say = (key: string) => string;

/** A button that shows what is typed into a secret control. */
function addPeek(place: HTMLElement, say: Say): void {
  const control = place.querySelector<HTMLInputElement | HTMLTextAreaElement>("input, textarea");
  if (!control) return;
  const button = add(place, "button", { type: "button", className: "peek" });
  const word = add(button, "span", {});
  add(button, "span", { className: "unseen", textContent: ` ${place.dataset["label"]}` });
  const set = (isShown: boolean): void => {
    if (control instanceof HTMLInputElement) control.type = isShown ? "text" : "password";
    else control.classList.toggle("covered", !isShown);
    word.textContent = say(isShown ? "hide" : "show");
    place.dataset["shown"] = String(isShown);
  };
  set(false);
  button.addEventListener("click", () => set(place.dataset["shown"] !== "true"));
  // Hidden again before it is sent, because browsers store values of text controls differently from passwords.
  control.form?.addEventListener("submit", () => set(false));
}

/** One row of headers, and a button for each further one; all of them are on the page from the beginning. */
function arrangeRows(place: HTMLElement, say: Say): void {
  const rows = all(".pair-row", place);
  const inputs = (row: HTMLElement): HTMLInputElement[] => all<HTMLInputElement>("input", row);
  place.querySelectorAll("details").forEach((details) => details.replaceWith(...all(".pair-row", details)));
  const more = document.createElement("button");
  const update = (): void => {
    more.hidden = rows.every((row) => !row.hidden);
  };
  rows.forEach((row, index) => {
    row.hidden =
      index > 0 && inputs(row).every((input) => input.value === "" && !input.hasAttribute("aria-invalid"));
    row.classList.add("removable");
    const remove = add(row, "button", { type: "button", className: "remove", textContent: "×" });
    remove.setAttribute("aria-label", say("remove").replace("{number}", String(index + 1)));
    remove.addEventListener("click", () => {
      for (const input of inputs(row)) input.value = "";
      if (rows.some((other) => other !== row && !other.hidden)) row.hidden = true;
      update();
      (row.hidden ? more : inputs(row)[0])?.focus();
    });
  });
  Object.assign(more, { type: "button", className: "another", textContent: say("add") });
  more.addEventListener("click", () => {
    const next = rows.find((row) => row.hidden);
    if (!next) return;
    next.hidden = false;
    update();
    inputs(next)[0]?.focus();
  });
  place.append(more);
  update();
}

/** Reads an authenticator's secret from a picture of its QR code; the picture never leaves the browser. */
function addPicture(place: HTMLElement, say: Say): void {
  const control = place.querySelector<HTMLInputElement>("input");
  if (!control || !("createImageBitmap" in window)) return;
  const label = add(place, "label", { className: "picture" });
  const chooser = add(label, "input", { type: "file", accept: "image/*", className: "unseen" });
  add(label, "span", { textContent: say("qrChoose") });
  add(place, "p", { className: "help", textContent: say("qrLocal") });
  const status = add(place, "p", { className: "status" });
  status.setAttribute("role", "status");
  const read = async (picture: Blob): Promise<void> => {
    status.textContent = say("qrReading");
    const text = await decode(picture).catch(() => "");
    const isFound = /^otpauth/i.test(text);
    if (isFound) control.value = text;
    status.textContent = say(isFound ? "qrFound" : "qrNone");
    chooser.value = "";
  };
  chooser.addEventListener("change", () => {
    const file = chooser.files?.[0];
    if (file) void read(file);
  });
  control.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/"));
    if (!file) return;
    event.preventDefault();
    void read(file);
  });
}

/** As large as it came, within reason, and smaller: what is too fine to see in one size may show in another. */
async function decode(picture: Blob): Promise<string> {
  const { decodeQR } = await import("qr/decode.js");
  const bitmap = await createImageBitmap(picture);
  for (const side of [1600, 800, 400]) {
    const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    const context = canvas.getContext("2d");
    if (!context) break;
    // Transparent areas count as white.
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    try {
      return decodeQR(context.getImageData(0, 0, canvas.width, canvas.height));
    } catch {
      // The next size.
    }
  }
  return "";
}

const AGAIN_MS = 30_000;
const REACH_MS = 10_000;

/** Whether the service answers. If it doesn't, the browser's own error page would lose what was typed. */
async function isReachable(): Promise<boolean> {
  const asked = new AbortController();
  setTimeout(() => asked.abort(), REACH_MS);
  const options = { method: "HEAD", cache: "no-store", signal: asked.signal } as const;
  try {
    const response = await fetch(import.meta.url, options);
    // To its end, or leaving the page would abort it.
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}

/** The button shows that the form is being sent, and a second click has no effect. */
function sendOnce(form: HTMLFormElement, say: Say): void {
  const button = form.querySelector<HTMLButtonElement>("button[type=submit]");
  const status = form.querySelector<HTMLElement>(".sending");
  if (!button || !status) return;
  const label = button.textContent;
  const set = (isSending: boolean): void => {
    form.setAttribute("aria-busy", String(isSending));
    button.disabled = isSending;
    button.textContent = isSending ? say("sending") : label;
    status.textContent = isSending ? say("sending") : "";
  };
  form.addEventListener("submit", (event) => {
    if (button.disabled) return event.preventDefault();
    status.className = "sending unseen";
    set(true);
    // No answer, or the person cancelled it: the form may be sent again, and still creates only one credential.
    setTimeout(() => set(false), AGAIN_MS);
    // A frame notices by itself when there is no answer.
    if (say("unsent") === "") return;
    event.preventDefault();
    void isReachable().then((is) => {
      // A field may have the name of the method.
      if (is) return HTMLFormElement.prototype.submit.call(form);
      set(false);
      Object.assign(status, { textContent: say("unsent"), className: "error" });
    });
  });
  addEventListener("online", () => {
    if (status.className === "error") status.textContent = "";
  });
  // For a frame, which notices when there is no answer.
  form.addEventListener("again", () => set(false));
  // The person came back from the next page: the form is unchanged and can be sent again.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) set(false);
  });
}
