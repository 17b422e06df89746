// In a window that a frame has just opened, until the frame sends it to the target. A page that isolates itself
// (Cross-Origin-Opener-Policy) cuts it off from its frame, which then shows a button for another one: this one is of no use.
if (window.opener === null) {
  window.close();
  // Where script can't close it.
  const [loading, cutOff] = document.querySelectorAll<HTMLElement>(".waiting");
  loading?.remove();
  cutOff?.removeAttribute("hidden");
}
export {};
