/** What one run does, with every engine. */
export interface Work {
  /** Steps, each with a checkpoint before the next where the engine has such a thing. */
  readonly steps: number;
  /** Whether each step GETs a small JSON document. */
  readonly gets: boolean;
}

export type EngineName = "sql" | "graphile-worker" | "pg-boss" | "dbos";

/** What an engine is opened with. */
export interface EngineOptions {
  readonly connectionString: string;
  readonly work: Work;
  /** One step of the work; gives what it read. */
  readonly step: (ordinal: number) => Promise<unknown>;
  /** Told of each run that is over, with the time that it was given when it was enqueued. */
  readonly carried: (sentMs: number) => void;
  /** Runs at once in one process. */
  readonly concurrency: number;
}

/** An engine beside ours, inside a process of its own. */
export interface Engine {
  /** Its tables and queues. */
  prepare(): Promise<void>;
  enqueueMany(count: number): Promise<void>;
  enqueue(sentMs: number): Promise<void>;
  /** Begins to carry what is enqueued, and goes on until the process ends. */
  work(): Promise<void>;
}
