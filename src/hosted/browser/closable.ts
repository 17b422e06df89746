// Runs in a window that a frame has opened: its button closes it.
for (const button of document.querySelectorAll<HTMLButtonElement>("main button.button")) {
  button.hidden = false;
  button.addEventListener("click", () => window.close());
}
export {};
