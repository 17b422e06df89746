import type { RunStep } from "../parts/answers.ts";
import type { NodeOf } from "./run-nodes.ts";

/** A node of a run, with everything that the service knows of its step. */
export type RunNode = NodeOf<RunStep>;
