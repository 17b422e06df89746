const NAME = "latchkey-mode";

/** Of this tab, until it is switched: each tab shows what its banner says. */
export const isTestMode: boolean = window.sessionStorage.getItem(NAME) === "test";

/** Loads the page again, so that nothing of the other mode stays on the page. */
export function switchMode(): void {
  if (isTestMode) window.sessionStorage.removeItem(NAME);
  else window.sessionStorage.setItem(NAME, "test");
  location.assign(document.baseURI);
}
