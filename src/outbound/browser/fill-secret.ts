import type { ElementHandle, Locator } from "playwright-core";
import type { Secret } from "#lib/secret.ts";
import { BrowserError } from "./browser-error.ts";
import { EDITABLE_ENGINE } from "./editable-engine.ts";
import { failureOf } from "./explain.ts";

export interface SecretField {
  /** Strict: exactly one element. */
  readonly field: Locator;
  /** The origins whose documents may have the value. */
  readonly hosts: readonly string[];
  /** `type` sends an event for each character, for fields that build their value from key events. */
  readonly how: "fill" | "type";
  /** Limit for finding the field and waiting until it is editable. */
  readonly timeoutMs: number;
}

/**
 * Sets a field to a secret (docs/decisions/0038). *Take* a handle, which belongs to one document and is dead when its frame
 * navigates; a locator would look again, and find the field of whatever page has come. *Prove*, without the value and where the
 * page's script sees nothing, that this is an editable field of `hosts`. *Set* the value in that same document. Throws BrowserError.
 */
export async function fillSecret(
  secret: Secret,
  { field, hosts, how, timeoutMs }: SecretField,
): Promise<void> {
  const handle = await attempt(async () => await field.elementHandle({ timeout: timeoutMs }), "not_found");
  try {
    const prove = async (): Promise<ElementHandle | null> =>
      await attempt(async () => await handle.$(`${EDITABLE_ENGINE}=${hosts.join(" ")}`));
    // Most fields are editable at once. For one that is not yet, the wait is a few calls more.
    const proven = (await prove()) ?? (await proveLater(handle, prove, timeoutMs));
    if (proven === null) throw await refusalOf(handle);
    try {
      const outcome = await attempt(
        async () => await proven.evaluate(setValue, [how, secret.reveal()] as const),
      );
      if (outcome === "gone")
        throw new BrowserError("gone", "the page replaced the field before the value was set");
      if (outcome === "closed")
        throw new BrowserError("not_editable", "the field was closed before the value was set");
    } finally {
      proven.dispose().catch(() => undefined);
    }
  } finally {
    handle.dispose().catch(() => undefined);
  }
}

async function proveLater<Proof>(
  handle: ElementHandle,
  prove: () => Promise<Proof>,
  timeoutMs: number,
): Promise<Proof> {
  await attempt(
    async () => await handle.waitForElementState("editable", { timeout: timeoutMs }),
    "not_editable",
  );
  return await prove();
}

/** `onTimeout`: what it means that the element was not there, or not ready, in time. */
async function attempt<T>(
  work: () => Promise<T>,
  onTimeout: "timeout" | "not_found" | "not_editable" = "timeout",
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failure = failureOf(error);
    const meant = failure === "timeout" ? onTimeout : failure;
    throw new BrowserError(meant, SENTENCES[meant] ?? "the field can't be filled in");
  }
}

const SENTENCES: Readonly<Record<string, string>> = {
  not_found: "no element matches",
  ambiguous: "several elements match",
  not_editable: "the field is not editable",
  gone: "the page navigated, or replaced the field, before the value was set",
  browser_crashed: "the browser has ended",
};

/** Why the proof failed: a field that was closed in the meantime is no attack. */
async function refusalOf(handle: ElementHandle): Promise<BrowserError> {
  const isEditable = await handle.isEditable().catch(() => null);
  if (isEditable === null) return new BrowserError("not_editable", "the element is not an editable field");
  return isEditable
    ? new BrowserError(
        "secret_refused",
        "the field is not a text field in a document of the strategy's hosts, or a frame around it is not; it gets no secret",
      )
    : new BrowserError("not_editable", "the field is not editable");
}

/** The part of the DOM that `setValue` uses: this file is checked without the types of pages. */
interface PageField {
  readonly isConnected: boolean;
  readonly isContentEditable?: boolean;
  readonly localName: string;
  readonly ownerDocument: PageDocument;
  readonly readOnly?: boolean;
  value?: string;
  textContent: string | null;
  matches(selector: string): boolean;
  focus(): void;
  getRootNode(): { readonly activeElement?: unknown };
  dispatchEvent(event: unknown): boolean;
}

interface PageDocument {
  readonly defaultView: PageWindow | null;
  execCommand(name: string, showUi: boolean, value?: string): boolean;
}

type NewEvent = new (type: string, init: object) => unknown;

interface PageWindow {
  readonly Event: NewEvent;
  readonly InputEvent: NewEvent;
  readonly KeyboardEvent: NewEvent;
  readonly HTMLInputElement: { readonly prototype: object };
  readonly HTMLTextAreaElement: { readonly prototype: object };
}

/** Runs in the page, in one go: nothing of the page's can come in between but what its own event handlers do. */
function setValue(
  given: unknown,
  [how, value]: readonly ["fill" | "type", string],
): "set" | "gone" | "closed" {
  const field = given as PageField;
  const view = field.ownerDocument.defaultView;
  if (!field.isConnected || view === null) return "gone";
  if (field.matches(":disabled") || field.readOnly === true) return "closed";
  field.focus();
  const put = (text: string): void => {
    if (field.isContentEditable === true) {
      field.textContent = text;
      return;
    }
    const kind = field.localName === "textarea" ? view.HTMLTextAreaElement : view.HTMLInputElement;
    // Frameworks watch the element's own property; the native setter is beside it.
    Object.getOwnPropertyDescriptor(kind.prototype, "value")?.set?.call(field, text);
  };
  const bubbling = { bubbles: true, composed: true };
  if (how === "fill") {
    put(value);
    field.dispatchEvent(new view.InputEvent("input", { ...bubbling, inputType: "insertText" }));
  } else {
    put("");
    for (const key of value) {
      if (field.getRootNode().activeElement !== field) return "closed";
      const init = { ...bubbling, key, cancelable: true };
      const goesOn = field.dispatchEvent(new view.KeyboardEvent("keydown", init));
      if (goesOn) field.ownerDocument.execCommand("insertText", false, key);
      field.dispatchEvent(new view.KeyboardEvent("keyup", init));
    }
  }
  field.dispatchEvent(new view.Event("change", bubbling));
  return "set";
}
