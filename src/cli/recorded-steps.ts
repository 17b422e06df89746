import { describeLocator, type LocatorConfig } from "#answers/browser/locator.ts";
import type { StepConfig, StepPlace } from "#answers/browser/define-step.ts";
import type { JsonObject } from "#domain/json.ts";
import type { RecordedAction } from "#outbound/browser/recorder.ts";
import { locatorOf, mapTexts } from "./recorded-locator.ts";
import { fieldNames, isSecret, typedIn, type FieldNames } from "./recorded-fields.ts";

/** A step of a draft, or only what is to be said in its place. */
export interface DraftStep {
  readonly step: StepConfig | null;
  readonly note?: string;
  /** Of a click that opened a window: what was done there. */
  readonly inside?: readonly DraftStep[];
}

/** The steps of a login or of one node, and what they need. */
export interface DraftPart {
  readonly place: StepPlace;
  readonly steps: readonly DraftStep[];
  readonly fields: FieldNames;
  /** Inputs that are files, by id. */
  readonly files: readonly string[];
  /** Whether it ends with a file. */
  readonly givesFile: boolean;
  /** The locator of the last field that got a secret. */
  readonly lastSecret: LocatorConfig | null;
}

/** Where what was done is a login: up to the click or key after the last secret. 0: no secret was typed. */
export function endOfLogin(actions: readonly RecordedAction[]): number {
  const last = actions.findLastIndex((action) => action.name === "fill" && isSecret(action));
  if (last < 0) return 0;
  const sent = actions.findIndex(({ name }, index) => index > last && (name === "click" || name === "press"));
  // What the person marked right after it is what a successful login shows.
  let end = sent < 0 ? last + 1 : sent + 1;
  while (actions[end]?.name.startsWith("assert") === true) end++;
  return end;
}

/** Actions without those that say nothing: clicks into a field before it is filled, keys that only move on, clicks by a key. */
export function tidy(recorded: readonly RecordedAction[]): readonly RecordedAction[] {
  const said = recorded.filter(saysSomething);
  // The page that the recording was begun with, wherever it has led.
  const actions = said[0]?.name === "navigate" ? said.slice(1) : said;
  const filled = mergeFills(actions);
  return filled.filter((action, index) => {
    const next = filled[index + 1];
    const isBefore = next !== undefined && placeOf(next) === placeOf(action);
    return (
      action.name !== "click" || !isBefore || !["fill", "select", "check", "uncheck"].includes(next.name)
    );
  });
}

function saysSomething(action: RecordedAction): boolean {
  if (action.name === "click") return action.clickCount > 0;
  if (action.name === "press") return keyOf(action) !== null;
  if (action.name === "navigate") return action.url !== "about:blank";
  return action.name !== "openPage" && action.name !== "closePage";
}

/** One fill for each field, with what was typed last: what comes from different frames may come in turns. */
function mergeFills(actions: readonly RecordedAction[]): readonly RecordedAction[] {
  const merged: RecordedAction[] = [];
  let run = new Map<string, number>();
  for (const action of actions) {
    if (action.name !== "fill") run = new Map();
    const at = action.name === "fill" ? run.get(placeOf(action)) : undefined;
    if (at === undefined) {
      if (action.name === "fill") run.set(placeOf(action), merged.length);
      merged.push(action);
    } else merged[at] = action;
  }
  return merged;
}

/** An editable text without a name is found by what it shows, which is what was just typed. */
const placeOf = ({ window, name, locator }: RecordedAction): string =>
  `${window} ${name === "fill" && locator?.kind === "text" ? "text" : JSON.stringify(locator)}`;

/** The steps of a part, in the order in which they were done. */
export function draftSteps(
  place: StepPlace,
  actions: readonly RecordedAction[],
  { start, ...given }: DraftGiven & { readonly start: string },
): DraftPart {
  const draft = new Draft(place, given);
  draft.open(start);
  for (const action of actions) draft.add(action);
  return draft.part();
}

interface DraftGiven {
  /** A path is resolved against the first one; null: only whole URLs are resolved. */
  readonly host: string | null;
  /** What was typed before this part, which can't be written as a reference here. */
  readonly typed: readonly string[];
}

class Draft {
  readonly #place: StepPlace;
  readonly #host: string | null;
  readonly #fields: FieldNames;
  readonly #typed: readonly string[];
  readonly #dismissed: DraftStep[] = [];
  readonly #steps: DraftStep[] = [];
  readonly #windows = new Map<number, DraftStep[]>();
  readonly #files: string[] = [];
  #answer: "accept" | "dismiss" = "dismiss";
  #givesFile = false;
  #lastSecret: LocatorConfig | null = null;

  constructor(place: StepPlace, { host, typed }: DraftGiven) {
    this.#place = place;
    this.#host = host;
    this.#typed = typed;
    this.#fields = fieldNames(place);
  }

  open(url: string): void {
    this.#steps.push({ step: { goto: this.#pathOf(url) } });
  }

  part(): DraftPart {
    const [first, ...rest] = this.#steps;
    return {
      place: this.#place,
      steps: [...(first === undefined ? [] : [first]), ...this.#dismissed, ...rest],
      fields: this.#fields,
      files: this.#files,
      givesFile: this.#givesFile,
      lastSecret: this.#lastSecret,
    };
  }

  add(action: RecordedAction): void {
    const steps = this.#windows.get(action.window) ?? this.#steps;
    const before = steps.at(-1)?.step?.["goto"];
    if (action.name === "navigate") {
      const path = this.#pathOf(action.url);
      if (before !== path) steps.push({ step: { goto: path } });
      return;
    }
    const locator = this.#locatorOf(action);
    if (locator === null) {
      steps.push({ step: null, note: `${action.name} an element: ${whyNot(action)}` });
      return;
    }
    this.#answerDialogs(action, steps);
    if (action.name === "click") this.#click(action, locator, steps);
    else steps.push(this.#stepOf(action, locator));
  }

  #answerDialogs({ dialog }: RecordedAction, steps: DraftStep[]): void {
    if (dialog === null || dialog === this.#answer) return;
    this.#answer = dialog;
    steps.push({ step: { dialog: { answer: dialog } } });
  }

  #click(action: RecordedAction, locator: LocatorConfig, steps: DraftStep[]): void {
    const { opens, downloads, button, clickCount } = action;
    if (isConsent(locator)) {
      this.#dismissed.push({ step: { dismiss: locator as JsonObject } });
      return;
    }
    if (downloads && this.#place === "node") {
      this.#givesFile = true;
      steps.push({ step: { download: { click: locator as JsonObject } } });
      return;
    }
    const click = {
      ...locator,
      ...(clickCount === 2 && { double: true }),
      ...(button !== "left" && { button }),
    } as unknown as JsonObject;
    // Filled as long as something is done in that window.
    const inside: DraftStep[] = [];
    if (opens !== null) this.#windows.set(opens, inside);
    steps.push({ step: { click }, inside });
  }

  #stepOf(action: RecordedAction, locator: LocatorConfig): DraftStep {
    const plain = (step: object): DraftStep => ({ step: step as StepConfig });
    switch (action.name) {
      case "fill":
        return this.#fillOf(action, locator);
      case "select":
        return plain({ select: { ...locator, option: action.options[0] ?? "" } });
      case "press":
        return plain({ press: { ...locator, key: keyOf(action) ?? "Enter" } });
      case "check":
      case "uncheck":
        return plain({ [action.name]: locator });
      case "assertText":
        return plain({ expect: { visible: { ...locator, has_text: action.text } } });
      case "assertVisible":
      case "assertChecked":
        return plain({ expect: { visible: locator } });
      default:
        return { step: null, note: `${action.name}: there is no such step.` };
    }
  }

  #fillOf(action: RecordedAction, locator: LocatorConfig): DraftStep {
    if (action.field?.type === "file") {
      if (this.#place === "login") return { step: null, note: "A file was chosen: logins have no `upload`." };
      const id = `upload_${this.#files.length + 1}`;
      this.#files.push(id);
      return { step: { upload: { ...locator, file: id } as unknown as JsonObject } };
    }
    if (isSecret(action)) this.#lastSecret = locator;
    const reference = this.#fields.take(action, locator);
    return { step: { fill: { ...locator, with: reference } as unknown as JsonObject } };
  }

  /** Null: it can't be told without what was typed. */
  #locatorOf(action: RecordedAction): LocatorConfig | null {
    const locator = locatorOf(action.locator);
    if (locator === null) return null;
    // The name of a field is not what is in it, but the text of an editable element is.
    if (action.name === "fill")
      return action.locator?.kind === "text" ? { css: "[contenteditable]" } : locator;
    let isTold = true;
    const kept = mapTexts(locator, (text) => {
      const written = this.#fields.replace(text);
      if (this.#typed.some((each) => shows(written, each))) isTold = false;
      if (this.#place === "login" && written !== text) isTold = false;
      return written;
    });
    return isTold ? kept : null;
  }

  #pathOf(url: string): string {
    const parsed = URL.parse(url);
    if (parsed === null) return url;
    const path = parsed.pathname + parsed.search;
    return this.#fields.replace(parsed.origin === this.#host ? path : parsed.origin + path);
  }
}

const whyNot = ({ locator }: RecordedAction): string =>
  locatorOf(locator) === null
    ? "it has neither a name nor a selector; give it a locator (docs/browser.md#locators)."
    : "it shows what was typed, which is not kept; give it a locator.";

const shows = (text: string, typed: string): boolean => text.toLowerCase().includes(typed.toLowerCase());

/** A banner that comes when it likes, and not at all where the session is known. */
const CONSENT =
  /^(i )?(accept|allow|agree|akzeptieren|alle akzeptieren|zustimmen|tout accepter|accepter|aceptar|accetta)( (all|and continue|& continue|cookies|all cookies|todo|tutti|tout))?$/i;
const isConsent = ({ role, name = "" }: LocatorConfig): boolean => role === "button" && CONSENT.test(name);

const KEYS =
  /^(.|Enter|Escape|Space|Backspace|Delete|Insert|Home|End|PageUp|PageDown|Arrow(Up|Down|Left|Right)|F([1-9]|1[0-2]))$/;

/** The key in the words of `press`. Null: `fill` needs no such key, or there is none. */
function keyOf({ key, modifiers }: RecordedAction): string | null {
  const name = key === " " ? "Space" : key;
  if (!KEYS.test(name)) return null;
  const held = [
    [1, "Alt"],
    [2, "Control"],
    [4, "Meta"],
    [8, "Shift"],
  ] as const;
  const words = held.flatMap(([bit, word]) =>
    (modifiers & bit) === 0 || (bit === 8 && name.length === 1) ? [] : [word],
  );
  return [...words, name].join("+");
}

/** What was done. `before`: actions whose texts are not told. */
export function sayAction({ name, locator }: RecordedAction, before: readonly RecordedAction[]): string {
  const found = locatorOf(locator);
  const said = found === null ? "" : describeLocator(found);
  const isTold =
    said !== "" &&
    !(name === "fill" && locator?.kind === "text") &&
    !typedIn(before).some((each) => shows(said, each));
  return `${name.startsWith("assert") ? "expect" : name} ${isTold ? said : "an element"}`;
}
