/** The parts of a run that its times are computed from; times are ISO strings by the service's clock. */
export interface TimedRun {
  readonly created_at: string;
  readonly claimed_at: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly credentials: readonly unknown[];
  readonly reviews: readonly {
    readonly node: string;
    readonly created_at: string;
    readonly decided_at: string | null;
  }[];
}

export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A part of a run's time that is not a step. */
export interface Phase extends Interval {
  readonly name: string;
  readonly kind: "queued" | "login";
}

export interface Timeline extends Interval {
  /** Before the first step, in order; without gaps. */
  readonly phases: readonly Phase[];
  /** By the waiting node. */
  readonly waits: readonly (Interval & { readonly node: string })[];
}

/** How a run spent its time, from its trigger to its end or until now. */
export function readTimeline(run: TimedRun, nowMs: number): Timeline {
  const fromMs = Date.parse(run.created_at);
  const toMs = Math.max(run.ended_at === null ? nowMs : Date.parse(run.ended_at), fromMs);
  const within = (at: string | null): number =>
    at === null ? toMs : Math.min(Math.max(Date.parse(at), fromMs), toMs);
  return {
    fromMs,
    toMs,
    phases: readPhases(run, { fromMs, toMs }, within),
    waits: run.reviews.map(({ node, created_at: asked, decided_at: decided }) => ({
      node,
      fromMs: within(asked),
      toMs: within(decided),
    })),
  };
}

function readPhases(
  run: TimedRun,
  { fromMs }: Interval,
  within: (at: string | null) => number,
): readonly Phase[] {
  const startedMs = within(run.started_at);
  if (run.credentials.length === 0) return [{ name: "Queued", kind: "queued", fromMs, toMs: startedMs }];
  if (run.claimed_at === null)
    // It has not begun, or the time is not known.
    return run.started_at === null
      ? [{ name: "Queued", kind: "queued", fromMs, toMs: startedMs }]
      : [{ name: "Queued and login", kind: "queued", fromMs, toMs: startedMs }];
  const claimedMs = within(run.claimed_at);
  return [
    { name: "Queued", kind: "queued", fromMs, toMs: claimedMs },
    { name: "Login", kind: "login", fromMs: claimedMs, toMs: startedMs },
  ];
}

const lengthOf = ({ fromMs, toMs }: Interval): number => toMs - fromMs;

/** A part of a run's duration. */
export interface DurationPart {
  readonly name: string;
  readonly kind: Phase["kind"] | "waiting" | "steps";
  readonly ms: number;
}

/** What a run's duration is made of; the parts add up to the whole. */
export function splitDuration(timeline: Timeline): readonly DurationPart[] {
  const phases = timeline.phases.map((phase) => ({
    name: phase.name.toLowerCase(),
    kind: phase.kind,
    ms: lengthOf(phase),
  }));
  const waiting = timeline.waits.reduce((sum, wait) => sum + lengthOf(wait), 0);
  const others = phases.reduce((sum, { ms }) => sum + ms, 0) + waiting;
  return [
    ...phases,
    ...(waiting > 0 ? [{ name: "waiting for a review", kind: "waiting", ms: waiting } as const] : []),
    { name: "steps", kind: "steps", ms: Math.max(lengthOf(timeline) - others, 0) },
  ];
}
