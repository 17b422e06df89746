import { Problem } from "#domain/problem.ts";

/** A fault that came while a login was being saved: by itself it does not tell whether it was. */
export class Unsettled extends Error {}

/** `save` may save a login. Its refusals pass as they are: with one, nothing was saved. */
export async function settling<T>(save: () => Promise<T>): Promise<T> {
  try {
    return await save();
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Unsettled("a login may have been saved", { cause: error });
  }
}
