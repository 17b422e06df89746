const NAME = "latchkey-mode";

/** Of this tab, until it is switched: each tab shows what its banner says. */
export const isTestMode: boolean = sessionStorage.getItem(NAME) === "test";

/** Begins anew, so that nothing of the other mode stays on the page. */
export function switchMode(): void {
  if (isTestMode) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, "test");
  location.assign(document.baseURI);
}
