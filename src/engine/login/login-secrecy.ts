import type { Strategy } from "#domain/strategy.ts";
import { findSecretUsesOf } from "#expressions/secret-use.ts";
import { loginTypes } from "#strategies/registry.ts";

/** The message for a failed login whose expressions could leak something through the failure. */
export const NOT_SHOWN =
  "the login failed; where and why is not shown, because its conditions use secret fields (`latchkey doctor` names it)";

// Strategy objects are cached, so each is checked once.
const looked = new WeakMap<Strategy, number | null>();

/**
 * The index of the first step whose course must not be shown: `apply` refuses logins whose expressions depend on a secret field, but
 * older ones keep working. The values and cookies of such a step influence all later steps. null: everything may be shown.
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
