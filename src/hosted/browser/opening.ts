// Runs in a window that a frame has just opened, until the frame redirects it to the target. A page with a
// Cross-Origin-Opener-Policy severs it from its frame, which then shows a button for another window: this one is useless.
if (window.opener === null) {
  window.close();
  // For windows that a script can't close.
  const [loading, cutOff] = document.querySelectorAll<HTMLElement>(".waiting");
  loading?.remove();
  cutOff?.removeAttribute("hidden");
}
export {};
