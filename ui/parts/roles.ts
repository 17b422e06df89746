import type { OperatorRole } from "#domain/operator.ts";

/** Must list all roles, or it does not compile. */
const NAMES: Readonly<Record<OperatorRole, true>> = {
  admin: true,
  operator: true,
  reviewer: true,
  viewer: true,
};
export const OPERATOR_ROLE_NAMES = Object.keys(NAMES) as readonly OperatorRole[];
