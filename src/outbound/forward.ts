import { request } from "undici";

const ANSWER_MS = 15_000;

/**
 * Posts an event to the address that the person at the command line has named: their own program, mostly on this machine, so the egress
 * gate's rules about private addresses do not apply. Returns the status, or the code of the error.
 */
export async function forward(
  url: string,
  headers: readonly (readonly [name: string, value: string])[],
  body: string,
): Promise<number | string> {
  try {
    const { statusCode, body: answer } = await request(url, {
      method: "POST",
      headers: Object.fromEntries([["content-type", "application/json"], ...headers]) as Record<
        string,
        string
      >,
      body,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    await answer.dump();
    return statusCode;
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    return code === undefined || typeof code !== "string" ? name : code;
  }
}
