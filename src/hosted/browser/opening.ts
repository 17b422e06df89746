// Runs in a window that a frame has just opened, until the frame redirects it to the target. A page with a
// Cross-Origin-Opener-Policy severs it from its frame, which then shows a button for another window: this one is useless.
import "./closable.ts";

if (window.opener === null) {
  window.close();
  // For windows that a script can't close.
  document.querySelector(".until")?.remove();
  const cutOff = document.querySelector<HTMLElement>(".cut-off");
  cutOff?.removeAttribute("hidden");
  document.title = cutOff?.querySelector("h1")?.textContent ?? "";
}
