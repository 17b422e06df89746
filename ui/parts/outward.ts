/** Types of nodes that may write to another system. */
export const OUTWARD: ReadonlySet<string> = new Set(["browser", "http", "loop"]);
