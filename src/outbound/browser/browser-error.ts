/** Why a browser did not do what it was asked. */
export type BrowserFailure =
  /** There is no Chromium here, or it does not start: the message says what to do. */
  | "browser_missing"
  /** All browsers of this process are taken, and it was not to be waited for one any longer. */
  | "no_place"
  /** The browser ended by itself. */
  | "browser_crashed"
  /** It took more memory than it may, and was ended. */
  | "browser_memory"
  /** A document came from an origin that is not one of `hosts`; the browser was ended. */
  | "origin_refused"
  | "timeout"
  | "cancelled"
  /** No element matches. */
  | "not_found"
  /** Several elements match. */
  | "ambiguous"
  /** The element is disabled, read-only or no field at all. */
  | "not_editable"
  /** The document or the element is gone: the page navigated, or replaced the field. */
  | "gone"
  /** The field is not in a document of `hosts`: it gets no secret. */
  | "secret_refused"
  /** The logged-in state is over the limit. */
  | "state_too_large"
  /** The page downloaded more than it may; the browser was ended. */
  | "download_too_large"
  /** The page or the driver failed in another way. */
  | "page";

/**
 * The only error that leaves this folder. Its message is ours and there is no cause: the driver's messages and call logs quote
 * what was typed.
 */
export class BrowserError extends Error {
  override readonly name = "BrowserError";
  readonly failure: BrowserFailure;

  constructor(failure: BrowserFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}
