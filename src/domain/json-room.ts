import { ByteBudget } from "#lib/byte-budget.ts";
import { limits } from "./limits.ts";

/** So little is parsed without asking. */
const FREE_BYTES = 65_536;
/** What a byte takes on its way: as text, and as text again for the thread that evaluates. */
const BYTES_PER_BYTE = 4;
/** And a value: `{}` as an object in a list, once for the answer and once for what an expression gives. */
const BYTES_PER_VALUE = 128;
const [COMMA, LIST, OBJECT] = [0x2c, 0x5b, 0x7b];

const room = new ByteBudget(limits.jsonRoomBytesMax);

/**
 * Waits until JSON of a target can be parsed whole without taking more memory, with all others of this process, than there is for it.
 * Gives what must be called when nothing of it is needed any more; who holds room must not ask for more before that. Rejects with the
 * signal's reason.
 */
export async function takeJsonRoom(content: Uint8Array | string, signal: AbortSignal): Promise<() => void> {
  if (content.length < FREE_BYTES) return () => {};
  const values = Math.min(countValues(content), limits.dataValuesMax);
  return await room.take(signal, content.length * BYTES_PER_BYTE + values * BYTES_PER_VALUE, signal);
}

/** No fewer than there are: what stands in texts is counted, too. */
function countValues(content: Uint8Array | string): number {
  const isText = typeof content === "string";
  let values = 1;
  for (let at = 0; at < content.length; at++) {
    const code = isText ? content.charCodeAt(at) : content[at];
    if (code === COMMA || code === LIST || code === OBJECT) values++;
  }
  return values;
}
