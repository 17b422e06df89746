import type { Document } from "yaml";
import { openYaml } from "#actions/config/open-yaml.ts";
import type { StepConfig } from "#answers/browser/define-step.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import type { RecordedAction, Recording } from "#outbound/browser/recorder.ts";
import { typedIn } from "./recorded-fields.ts";
import { draftSteps, endOfLogin, tidy, type DraftPart, type DraftStep } from "./recorded-steps.ts";
import { title } from "./strategy-template.ts";

/** What is to be made of a recording. */
export interface DraftRequest {
  /** The page that it began with. */
  readonly url: string;
  /** Origins whose pages could be opened; the first one is that of `url`. */
  readonly hosts: readonly string[];
  readonly account: string;
  readonly strategy: string | null;
  readonly blueprint: string | null;
}

type Recorded = Pick<Recording, "actions" | "resources" | "signOut">;

/** The documents of a recording, as YAML: a strategy, a Blueprint, or both. */
export function draftDocuments(
  { resources, signOut, ...recording }: Recorded,
  request: DraftRequest,
): string {
  const actions = tidy(recording.actions);
  const end = request.blueprint === null ? actions.length : endOfLogin(actions);
  const login = actions.slice(0, end);
  const strategyId = request.strategy ?? (end > 0 ? `strat_${request.blueprint}` : null);
  const texts: string[] = [];
  if (strategyId !== null && (end > 0 || request.blueprint === null)) {
    const part = draftSteps("login", login, { host: hostOf(request), typed: [], start: request.url });
    texts.push(strategyText(strategyId, part, request, { resources: [...resources], signOut }));
  }
  if (request.blueprint !== null) {
    const typed = typedIn(login);
    const parts = byDownload(actions.slice(end)).map((part, index) => {
      const start = index === 0 && end === 0 ? request.url : (part[0]?.url ?? request.url);
      return draftSteps("node", part, { host: strategyId === null ? null : hostOf(request), typed, start });
    });
    texts.push(blueprintText(request.blueprint, parts, request, strategyId));
  }
  return texts.join("---\n");
}

const hostOf = ({ hosts }: DraftRequest): string | null => hosts[0] ?? null;

/** A node gives one file, and ends with it. Never empty. */
function byDownload(actions: readonly RecordedAction[]): readonly (readonly RecordedAction[])[] {
  const parts: RecordedAction[][] = [[]];
  for (const action of actions) {
    if (parts.at(-1)?.at(-1)?.downloads === true) parts.push([]);
    parts.at(-1)?.push(action);
  }
  return parts;
}

function strategyText(
  id: string,
  { steps, fields, lastSecret }: DraftPart,
  { account, hosts, url }: DraftRequest,
  { resources, signOut }: { readonly resources: readonly string[]; readonly signOut: Recorded["signOut"] },
): string {
  const document = {
    strategy: id,
    account,
    name: title(id.replace(/^strat_/, "")),
    hosts,
    fields: fields.list.map(({ key, label, type }) => ({ key, label, type })),
    login: {
      type: "browser",
      ...(resources.length > 0 && { resources: resources.slice(0, RESOURCES_MAX) }),
      steps: written([...steps, ...expectation(steps, lastSecret, signOut)]),
    },
  };
  return write(document, url, {
    hosts: "The only origins that may ever receive this credential.",
    fields: "What the end user is asked for.",
    resources:
      "What the pages loaded from elsewhere. Their scripts can read what is typed: leave out what is not needed.",
  });
}

const RESOURCES_MAX = 20;
const REFUSED =
  "Beside `visible`, say by `rejected` what the page shows for a wrong password: { text: Wrong password }.";

/** What tells that the login succeeded, unless the person has marked something. */
function expectation(
  steps: readonly DraftStep[],
  lastSecret: DraftPart["lastSecret"],
  signOut: Recorded["signOut"],
): readonly DraftStep[] {
  if (steps.some(({ step }) => step?.["expect"] !== undefined)) return [];
  if (signOut !== null) return [{ step: { expect: { visible: { ...signOut } } }, note: REFUSED }];
  return lastSecret === null
    ? []
    : [
        {
          step: { expect: { hidden: lastSecret as unknown as JsonObject } },
          note: "Better: what the page shows after the sign-in, { visible: … }, and for a wrong password, rejected: { text: … }.",
        },
      ];
}

function blueprintText(
  key: string,
  parts: readonly DraftPart[],
  { account, hosts, url }: DraftRequest,
  strategy: string | null,
): string {
  const inputs = [...new Set(parts.flatMap(({ fields }) => fields.list.map((field) => field.key)))];
  const files = [...new Set(parts.flatMap((part) => part.files))];
  const idOf = (wanted: string, index: number): string => {
    const id = index === 0 ? wanted : `${wanted}_${index + 1}`;
    return inputs.includes(id) ? `${id}_of_page` : id;
  };
  const input = (accepts: string) => (id: string) => ({
    id,
    type: "input",
    refKey: id,
    accepts,
    required: true,
  });
  const document = {
    blueprint: key,
    account,
    name: title(key),
    ...(strategy === null ? { hosts } : { credentials: { it: { strategy } } }),
    nodes: [
      ...inputs.map(input("text")),
      ...files.map(input("file")),
      ...parts.flatMap(({ steps, givesFile }, index) => [
        {
          id: idOf("page", index),
          type: "browser",
          ...(strategy !== null && { credential: "it" }),
          steps: written(givesFile ? steps : [...steps, READING]),
        },
        ...(givesFile
          ? [{ id: idOf("file", index), type: "parse", from: idOf("page", index), format: "csv" }]
          : []),
      ]),
      ...parts.map(({ givesFile }, index) => ({
        id: idOf("out", index),
        type: "output",
        refKey: idOf("page", index),
        from: idOf(givesFile ? "file" : "page", index),
      })),
    ],
  };
  return write(document, url, {
    nodes: "A step that changes something at the target needs `effect: write` (docs/browser.md#writes).",
  });
}

const READING: DraftStep = {
  step: { extract: { fields: { title: "h1" } } },
  note: "What is read: single fields, or `rows` and `columns` of a table (docs/steps/extract.md).",
};

/** Stands in a step for what is written above it. */
const NOTE = "\u0000note";

function written(steps: readonly DraftStep[]): readonly JsonObject[] {
  return steps.map(({ step, note, inside = [] }): JsonObject => {
    const said: JsonObject = note === undefined ? {} : { [NOTE]: note };
    if (step === null) return said;
    if (inside.length === 0) return { ...said, ...step };
    const { click } = step as { readonly click: Json };
    return { ...said, popup: { click, steps: written(inside) as unknown as Json } } as StepConfig;
  });
}

/** Maps that stand in one line: what a step is given, fields and small nodes. */
const IN_LINE_MAX = 120;

function write(document: object, url: string, notes: Readonly<Record<string, string>>): string {
  const yaml = openYaml();
  const made: Document = new yaml.Document(document, { aliasDuplicateObjects: false });
  const isSteps = (path: readonly unknown[]): boolean => {
    const pair = path.at(-2);
    return yaml.isPair(pair) && yaml.isScalar(pair.key) && pair.key.value === "steps";
  };
  yaml.visit(made, {
    Pair: (_, { key }) => {
      const note = yaml.isScalar(key) && typeof key.value === "string" ? notes[key.value] : undefined;
      if (note !== undefined && yaml.isScalar(key)) key.commentBefore = ` ${note}`;
    },
    Seq: (_, list, path) => {
      if (!isSteps([...path, list])) return;
      // A note stands above the next step, or at the end.
      let waiting = "";
      list.items = list.items.filter((item) => {
        if (!yaml.isMap(item)) return true;
        const note = item.get(NOTE);
        if (typeof note === "string") waiting += `${waiting === "" ? "" : "\n"} ${note}`;
        item.delete(NOTE);
        if (item.items.length === 0) return false;
        if (waiting !== "") item.commentBefore = waiting;
        waiting = "";
        return true;
      });
      if (waiting !== "") list.comment = waiting;
    },
    Map: (_, map, path) => {
      const isItemOfSteps = yaml.isSeq(path.at(-1)) && isSteps(path);
      const text = JSON.stringify(map);
      const isSmall = text.length <= IN_LINE_MAX && !text.includes('"steps"');
      if (path.length > 1 && !isItemOfSteps && isSmall) map.flow = true;
    },
  });
  const head = `# Recorded from ${url.replace(/[?#].*$/, "")}. Look through it before you use it.\n`;
  return head + made.toString({ lineWidth: 0 });
}
