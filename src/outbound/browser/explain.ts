import { BrowserError, type BrowserFailure } from "./browser-error.ts";

/** The kind of an error of the driver's, by its name and the beginning of its message, neither of which goes any further. */
export function failureOf(error: unknown): BrowserFailure {
  if (error instanceof BrowserError) return error.failure;
  if (!(error instanceof Error)) return "page";
  if (error.name === "TimeoutError") return "timeout";
  const text = error.message.slice(0, 2_000);
  if (text.includes("strict mode violation")) return "ambiguous";
  if (/Target crashed|browser has been closed|Target page, context or browser has been closed/.test(text))
    return "browser_crashed";
  if (
    /not attached|detached|context was destroyed|Cannot find context|different document|JavaScript world|JSHandle is disposed|navigat/i.test(
      text,
    )
  )
    return "gone";
  if (/not an? (<input>|editable|enabled)|is not editable|not enabled/i.test(text)) return "not_editable";
  return "page";
}

const SENTENCES: Readonly<Partial<Record<BrowserFailure, string>>> = {
  ambiguous: "several elements match",
  browser_crashed: "the browser has ended",
  gone: "the page navigated, or the element is gone",
  not_editable: "the element is not an editable field",
  timeout: "the page did not get there in time",
};

export function explainFailure(error: unknown): BrowserError {
  if (error instanceof BrowserError) return error;
  const failure = failureOf(error);
  return new BrowserError(failure, SENTENCES[failure] ?? "the page could not be used");
}

const NO_SANDBOX =
  "Chromium has no sandbox here, because this machine or container allows no user namespaces. Allow them (for containers: by a " +
  "seccomp profile), or set LATCHKEY_BROWSER_SANDBOX=off to run pages without a sandbox.";

/** Why the program did not start. `uid`: the user that it runs as; null: ours. */
export function explainStart(error: unknown, program: string, uid: number | null): BrowserError {
  if (error instanceof BrowserError) return error;
  const text = error instanceof Error ? error.message : "";
  if (text.includes("No usable sandbox")) return new BrowserError("browser_missing", NO_SANDBOX);
  if (error instanceof Error && error.name === "TimeoutError")
    return new BrowserError("timeout", "Chromium did not start in time");
  const user = uid === null ? "this user" : `user ${uid}, which browsers run as here,`;
  const why = /exec.*: Permission denied/.test(text)
    ? `: ${user} may not start it, or may not enter its folder`
    : "";
  return new BrowserError("browser_missing", `${program} did not start${why}. \`latchkey doctor\` tries it.`);
}
