import type { Locator, Page } from "playwright-core";
import type { TObject, TSchema, TUnsafe } from "typebox";
import type { ConfigFinding, ConfigPath } from "#domain/config-problem.ts";
import { DURATION_PATTERN } from "#domain/duration.ts";
import { TEMPLATE, type ExpressionScopeKind } from "#domain/expression.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { namedSchema } from "#domain/named-schema.ts";
import { Type } from "#lib/type.ts";
import { locatorOf, type LocatorConfig } from "./locator.ts";
import type { StepBrowser } from "./step-browser.ts";

/** Where a list of steps stands: their templates have other variables, and some steps exist only in one of the two. */
export type StepPlace = "login" | "node";

/** A step as the document has it: the key of its kind, and keys that all steps may have. */
export type StepConfig = JsonObject;

/** What the schemas of steps are made of, for one place. */
export interface Terms {
  readonly place: StepPlace;
  readonly locatorKeys: ReturnType<typeof locatorOf>["keys"];
  readonly locator: (description: string) => TUnsafe<LocatorConfig>;
  /** A text that may have `{{ … }}`. */
  readonly text: (description: string) => TSchema;
  readonly duration: (description: string) => TSchema;
  /** A list of steps inside of a step. */
  readonly steps: (description: string) => TSchema;
}

/** A file from a page; it must be read before the browser is closed. */
export interface DownloadedFile {
  readonly filename: string;
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

/** A file for a page. */
export interface UploadedFile {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

/** The values of a page that a node's steps have read so far. */
export interface StepSink {
  /** Records, one for each row. */
  readonly rows: (rows: readonly JsonObject[]) => void;
  /** The file that the page gives. */
  readonly file: (file: DownloadedFile) => Promise<void>;
  /** Fields of the one record, or of the record of a row inside of `each`. */
  readonly fields: (fields: JsonObject) => void;
}

/** What a step can do. `Locator` and `Page` are the driver's; their errors never leave `runSteps`. */
export interface StepRun {
  readonly place: StepPlace;
  readonly browser: StepBrowser;
  readonly page: Page;
  /** What locators are relative to: the page, or a row. */
  readonly root: Page | Locator;
  readonly signal: AbortSignal;
  /** How long the step may wait for the page. */
  readonly timeoutMs: number;
  /** The step after this one, which tells what else the page may show next. */
  readonly next: StepConfig | undefined;
  readonly sink: StepSink;
  /** What `extract` steps inside of a `repeat` have read in the round before, by their place. */
  readonly lastRound: Map<string, string> | null;
  readonly path: ConfigPath;
  readonly render: (template: Json) => Promise<Json | undefined>;
  /** The rendered template as text; null and no value are empty. */
  text(template: string): Promise<string>;
  /** The element that a locator describes; it is looked up when it is used. A failure of the step names it. */
  find(locator: LocatorConfig): Promise<Locator>;
  steps(list: readonly StepConfig[], path: ConfigPath, change?: Partial<StepRun>): Promise<void>;
  /** Commits the intent of the node's write. */
  commit(): Promise<void>;
  /** Shows operators what the page shows now. */
  show(): Promise<void>;
  /** The file that another node gives, by its id. Throws what the node throws. */
  fileOf(source: string): Promise<UploadedFile>;
  sleep(ms: number): Promise<void>;
  nowMs(): number;
}

/** A kind of step. Its schema is made for each place, because templates differ. */
export interface StepKind {
  readonly kind: string;
  /** One sentence for the documentation and editors. */
  readonly description: string;
  /** The only place in which it exists; undefined: both. */
  readonly only?: StepPlace;
  /** Steps in YAML, for its page. */
  readonly example: string;
  /** Paragraphs of its page. */
  readonly more?: string;
  readonly schema: (terms: Terms) => TSchema;
  /** Keys besides its own that stand next to it in the step, such as `steps`. */
  readonly beside?: (terms: Terms) => { readonly [key: string]: TSchema };
  /** Mistakes that the schema can't express. `config` satisfies the schema. */
  readonly check?: (config: never, path: ConfigPath, step: StepConfig) => readonly ConfigFinding[];
  /** The step in the document's words, after its kind. */
  readonly describe?: (config: never) => string;
  readonly run: (run: StepRun, config: never, step: StepConfig) => Promise<void>;
}

interface StepDefinition<Config> extends Omit<StepKind, "check" | "describe" | "run"> {
  readonly check?: (config: Config, path: ConfigPath, step: StepConfig) => readonly ConfigFinding[];
  readonly describe?: (config: Config) => string;
  readonly run: (run: StepRun, config: Config, step: StepConfig) => Promise<void>;
}

export function defineStep<Config>(definition: StepDefinition<Config>): StepKind {
  return definition;
}

/** A reference to the schema of a step, which contains itself. */
export const stepReference = (place: StepPlace, step: () => TObject): TUnsafe<StepConfig> =>
  namedSchema<StepConfig>(`browser_${place}_step`, step);

/** The terms of one place. `step`: the schema of its steps. */
export function termsOf(place: StepPlace, scope: ExpressionScopeKind, step: () => TObject): Terms {
  const { keys, named } = locatorOf(place, scope);
  const item = stepReference(place, step);
  return {
    place,
    locatorKeys: keys,
    locator: named,
    text: (description) => Type.String({ minLength: 1, [TEMPLATE]: scope, description }),
    duration: (description) => Type.String({ pattern: DURATION_PATTERN, description }),
    steps: (description) => Type.Array(item, { minItems: 1, maxItems: 100, description }),
  };
}

const closed = { additionalProperties: false } as const;

/** The schema of a step that acts on one element: the locator's keys, and its own. */
export const onElement = ({ locatorKeys }: Terms, own: { readonly [key: string]: TSchema } = {}): TObject =>
  Type.Object({ ...locatorKeys, ...own }, closed);
