/** The description of a schema's `pattern` in messages: `must be …`. */
export const SAYS = "x-says";
/** Keys that are planned but not implemented yet, each with what to do instead: refused by name (docs/decisions/0030). */
export const UNBUILT_KEYS = "x-unbuilt-keys";
