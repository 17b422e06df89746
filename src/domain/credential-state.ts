/** The states of a credential's logins that operators look for. */
export const CREDENTIAL_STATES = ["locked", "rejected"] as const;
export type CredentialState = (typeof CREDENTIAL_STATES)[number];
