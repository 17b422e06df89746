import type { OperatorRole } from "#domain/operator.ts";

/** What each role may do, according to `PERMISSIONS`. */
export const ROLE_TEXTS: Readonly<Record<OperatorRole, string>> = {
  admin:
    "Can do everything, including creating operators, changing roles, resetting passwords and issuing API keys.",
  operator:
    "Can publish documents, start, cancel and purge runs, decide reviews and writes, and manage credentials and account secrets, but not operators or API keys.",
  reviewer:
    "Can see runs and their results and decide reviews, but not see credentials, documents or the audit log.",
  viewer:
    "Can see runs, reviews, documents and the names of credentials, but no records or results, and can change nothing.",
};
