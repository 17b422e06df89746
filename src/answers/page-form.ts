import type { Cheerio, CheerioAPI } from "cheerio";

/** A form on a page, as a browser would submit it when Enter is pressed in it. */
export interface PageForm {
  /** The action as written; empty: the page's own address. */
  readonly action: string;
  /** The `href` of the page's `<base>`. */
  readonly base: string;
  readonly method: string;
  readonly encoding: string;
  readonly pairs: readonly (readonly [name: string, value: string])[];
  /** The index of the default button's pair; null: the form has none. */
  readonly pressedPair: number | null;
  /** The buttons that submit the form, each with its action. */
  readonly buttons: readonly { readonly name: string; readonly action: string }[];
  /** All controls that have a name, each once, including those that are not sent in the page's current state. */
  readonly controls: readonly PageControl[];
}

export interface PageControl {
  readonly name: string;
  /** The values of a `select` or of radio buttons; null: any value is accepted. */
  readonly options: readonly string[] | null;
}

type Element = ReturnType<CheerioAPI> extends Cheerio<infer Each> ? Cheerio<Each> : never;

/** HTML, "Form submission": the successful controls in document order, and the default button. */
export function readPageForm(page: CheerioAPI, css: string): PageForm | null {
  const form = page(css).filter("form").first();
  if (form.length === 0) return null;
  const id = form.attr("id");
  const isOwn = (control: Element): boolean => {
    const owner = control.attr("form");
    return owner === undefined ? control.closest("form").is(form) : owner === id;
  };
  const all = page("input, select, textarea, button")
    .toArray()
    .map((control) => page(control))
    .filter(isOwn);
  const controls = all.filter((control) => !isDisabled(control));
  const pressed = controls.find(isSubmit);
  const actionOf = (button: Element | undefined): string =>
    (button?.attr("formaction") ?? form.attr("action") ?? "").trim();
  const sent = controls.flatMap((control) =>
    pairsOf(page, control, control === pressed).map((pair) => ({ pair, isPressed: control === pressed })),
  );
  const pressedPair = sent.findIndex(({ isPressed }) => isPressed);
  return {
    action: actionOf(pressed),
    base: page("base[href]").first().attr("href") ?? "",
    method: (form.attr("method") ?? "get").trim().toLowerCase(),
    encoding: (form.attr("enctype") ?? "application/x-www-form-urlencoded").trim().toLowerCase(),
    pairs: sent.map(({ pair }) => pair),
    pressedPair: pressedPair === -1 ? null : pressedPair,
    buttons: controls
      .filter(isSubmit)
      .map((button) => ({ name: button.attr("name") ?? "", action: actionOf(button) })),
    controls: describeControls(page, all),
  };
}

function describeControls(page: CheerioAPI, controls: readonly Element[]): readonly PageControl[] {
  const byName = new Map<string, PageControl>();
  for (const control of controls) {
    const name = control.attr("name") ?? "";
    if (name === "") continue;
    const options = optionsOf(page, control);
    const before = byName.get(name)?.options;
    byName.set(name, {
      name,
      // Controls with the same name accept a value if one of them does.
      options: options === null || before === null ? null : [...new Set([...(before ?? []), ...options])],
    });
  }
  return [...byName.values()];
}

function optionsOf(page: CheerioAPI, control: Element): readonly string[] | null {
  if (control.is("select"))
    return control
      .find("option")
      .toArray()
      .map((option) => page(option).attr("value") ?? page(option).text().trim());
  return typeOf(control) === "radio" ? [control.attr("value") ?? "on"] : null;
}

function isDisabled(control: Element): boolean {
  return control.attr("disabled") !== undefined || control.closest("fieldset[disabled]").length > 0;
}

const typeOf = (control: Element): string => (control.attr("type") ?? "").toLowerCase();

function isSubmit(control: Element): boolean {
  if (control.is("button")) return !["button", "reset"].includes(typeOf(control));
  return control.is("input") && typeOf(control) === "submit";
}

function pairsOf(page: CheerioAPI, control: Element, isPressed: boolean): [string, string][] {
  const name = control.attr("name") ?? "";
  if (name === "") return [];
  const value = control.attr("value");
  if (control.is("textarea")) return [[name, control.text().replace(/^\r?\n/, "")]];
  if (control.is("select")) return selected(page, control).map((each) => [name, each]);
  if (control.is("button") || ["submit", "image", "reset", "button"].includes(typeOf(control)))
    return isPressed ? [[name, value ?? ""]] : [];
  switch (typeOf(control)) {
    case "file":
      return [];
    case "checkbox":
    case "radio":
      return control.attr("checked") === undefined ? [] : [[name, value ?? "on"]];
    default:
      return [[name, value ?? ""]];
  }
}

function selected(page: CheerioAPI, select: Element): readonly string[] {
  const options = select
    .find("option")
    .toArray()
    .map((option) => page(option));
  const chosen = options.filter((option) => option.attr("selected") !== undefined);
  const sent =
    select.attr("multiple") === undefined
      ? [chosen.at(-1) ?? options.find((option) => option.attr("disabled") === undefined)]
      : chosen;
  return sent.flatMap((option) =>
    option === undefined ? [] : [option.attr("value") ?? option.text().trim()],
  );
}
