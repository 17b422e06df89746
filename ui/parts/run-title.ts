import { shortId } from "./short-id.ts";

/** What lists call a run. */
export const runTitle = (run: {
  readonly name: string | null;
  readonly blueprint: string | null;
  readonly tested: string | null;
  readonly is_sign_in?: boolean;
  readonly id: string;
}): string =>
  run.name ??
  (run.blueprint === null
    ? [run.is_sign_in === true ? "Sign-in" : "Test login", run.tested]
        .filter((text) => text !== null)
        .join(" of ")
    : shortId(run.id));
