import { EVENT_TYPES, type EventType } from "./webhook.ts";

/** The rows of a made-up event, as the database would have stored them. No object has these ids. */
export interface ExampleEvent {
  readonly subjectId: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const ID = "00000000000000000000000000000";
const STRATEGY = "strat_example";

/** A made-up event of a type, at a time (ISO 8601). `ping` and the events of endpoints can't be made up: these are of an endpoint. */
export function exampleEvent(type: EventType, at: string): ExampleEvent {
  const [subject = "", what = ""] = type.split(".");
  const make = EXAMPLES[subject];
  if (make === undefined) throw new RangeError(`no example of ${type}`);
  return make(what, at);
}

const RUN_STATES: Readonly<Record<string, readonly [status: string, step: string]>> = {
  started: ["running", "running"],
  awaiting_review: ["running", "awaiting_review"],
  purged: ["completed", "completed"],
};

const EXAMPLES: Readonly<Record<string, (what: string, at: string) => ExampleEvent>> = {
  run: (what, at) => {
    const [status, progressStep] = RUN_STATES[what] ?? [what, what];
    const isOver = status !== "running";
    return {
      subjectId: `run_${ID}`,
      data: {
        id: `run_${ID}`,
        runKey: "00000000-0000-4000-8000-000000000000",
        status,
        progressStep,
        createdAt: at,
        startedAt: at,
        endedAt: isOver ? at : null,
        blueprintId: `bp_${ID}`,
      },
    };
  },
  credential_session: (what, at) => ({
    subjectId: `cs_${ID}`,
    data: {
      id: `cs_${ID}`,
      returnUrl: null,
      strategyId: STRATEGY,
      metadata: null,
      cancelUrl: null,
      ...ended(what, at),
    },
  }),
  embedded_credential_session: (what, at) => ({
    subjectId: `ecs_${ID}`,
    data: {
      id: `ecs_${ID}`,
      origin: "https://app.example.com",
      blueprintKeys: ["example"],
      selectedBlueprintKey: what === "completed" ? "example" : null,
      credentialIds: what === "completed" ? { example: `cred_${ID}` } : {},
      ...ended(what, at),
    },
  }),
  credential: () => ({ subjectId: `cred_${ID}`, data: { id: `cred_${ID}`, strategyId: STRATEGY } }),
};

const ended = (status: string, at: string) => ({
  status,
  credentialId: status === "completed" ? `cred_${ID}` : null,
  expiresAt: at,
  completedAt: status === "completed" ? at : null,
  createdAt: at,
});

/** The types that can be made up. */
export const TRIGGERED_TYPES: readonly EventType[] = (Object.keys(EVENT_TYPES) as EventType[]).filter(
  (type) => Object.hasOwn(EXAMPLES, type.split(".")[0] ?? ""),
);
