// While a login is tried, the page asks for the outcome by a form, whose answer waits for it. Without this it has a button.
const SHOWN_FIRST_MS = 100;

const form = document.querySelector<HTMLFormElement>("form.check");
if (form) setTimeout(() => form.submit(), SHOWN_FIRST_MS);
export {};
