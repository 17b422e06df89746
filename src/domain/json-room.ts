import { ByteBudget } from "#lib/byte-budget.ts";
import { limits } from "./limits.ts";

/** Up to this size, JSON is parsed without a reservation. */
const FREE_BYTES = 65_536;
/** The memory per byte: as text, and again as text for the evaluating thread. */
const BYTES_PER_BYTE = 4;
/** The memory per value: `{}` as an object in a list, once in the response and once in an expression's result. */
const BYTES_PER_VALUE = 128;
const [COMMA, LIST, OBJECT] = [0x2c, 0x5b, 0x7b];

const room = new ByteBudget(limits.jsonRoomBytesMax);

/**
 * Waits until a target's JSON can be parsed whole within the memory that this process reserves for all parsing.
 * Returns a function that releases the reservation; a holder must not reserve more before it has released. Rejects with the
 * signal's reason.
 */
export async function reserveJsonMemory(
  content: Uint8Array | string,
  signal: AbortSignal,
): Promise<() => void> {
  if (content.length < FREE_BYTES) return () => {};
  const values = Math.min(countValues(content), limits.dataValuesMax);
  return await room.take(signal, content.length * BYTES_PER_BYTE + values * BYTES_PER_VALUE, signal);
}

/** An upper bound: characters inside strings are counted, too. */
function countValues(content: Uint8Array | string): number {
  const isText = typeof content === "string";
  let values = 1;
  for (let at = 0; at < content.length; at++) {
    const code = isText ? content.charCodeAt(at) : content[at];
    if (code === COMMA || code === LIST || code === OBJECT) values++;
  }
  return values;
}
