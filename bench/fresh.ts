/** In a rendered request: becomes a text that was never sent before. */
export const FRESH = "{fresh}";
