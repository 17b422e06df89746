const LENGTH_MAX = 16;

/** An id without its middle: `run_0VrJ…TqN5`. */
export const shortId = (id: string): string =>
  id.length > LENGTH_MAX ? `${id.slice(0, 8)}…${id.slice(-4)}` : id;
