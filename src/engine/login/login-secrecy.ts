import type { Strategy } from "#domain/strategy.ts";
import { findSecretUsesOf } from "#expressions/secret-use.ts";
import { loginTypes } from "#strategies/registry.ts";

/** What is said of a login that fails and whose expressions could make its failure tell something. */
export const NOT_SHOWN =
  "the login failed; where and why is not shown, because its conditions use secret fields (`latchkey doctor` names it)";

// The strategies of runs are kept, so each is looked at once.
const looked = new WeakMap<Strategy, number | null>();

/**
 * From which of its steps on (0 is the first) the course of a login must not be shown: `apply` refuses a login whose expressions tell
 * of a secret field, but one that was in force before goes on. What such a step extracts, and the cookies that it brings, decide what
 * comes after it. null: all may be shown.
 */
export function hiddenFrom(strategy: Strategy): number | null {
  const known = looked.get(strategy);
  if (known !== undefined) return known;
  const type = loginTypes.get(strategy.login.type);
  const uses = type === undefined ? [] : findSecretUsesOf(type.schema, strategy);
  const { steps } = strategy.login;
  const last = Array.isArray(steps) ? steps.length - 1 : 0;
  const hidden = uses.map(({ path: [key, index] }) =>
    key === "steps" && typeof index === "number" ? index : key === "check" ? last + 1 : last,
  );
  const first = hidden.length === 0 ? null : Math.max(0, Math.min(...hidden));
  looked.set(strategy, first);
  return first;
}
