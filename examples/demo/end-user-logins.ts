/** Logins of the portal's demo accounts; see examples/portal/accounts.ts. */
const PASSWORD = "correct horse battery staple";

export const LOGIN = { username: "demo", password: PASSWORD };
export const LOGIN_WITH_CODE = {
  username: "demo-totp",
  password: PASSWORD,
  totp: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
};
export const LOGIN_OF_METERS = { username: "demo-meters", password: PASSWORD };
/** See examples/portal/ledger.ts. */
export const LEDGER_KEY = { api_key: "southgate-demo-key-5b1f0c7a" };
/** See examples/portal/oauth-clients.ts, and `client_secret` in examples/strategies/northwind-bank.yaml. */
export const ACCOUNT_SECRETS = { NORTHWIND: "northwind-demo-client-secret-41c9a7" };
