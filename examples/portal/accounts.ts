export interface PortalAccount {
  readonly username: string;
  readonly displayName: string;
  readonly password: string;
  /** Base32 (RFC 4648); null: the account signs in with its password alone. */
  readonly totpSecret: string | null;
}

/** Published demo accounts. They open nothing but this portal, which listens on loopback only. */
export const PORTAL_ACCOUNTS: readonly PortalAccount[] = [
  {
    username: "demo",
    displayName: "Dana Demo",
    password: "correct horse battery staple",
    totpSecret: null,
  },
  {
    username: "demo-totp",
    displayName: "Theo Demo",
    password: "correct horse battery staple",
    totpSecret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
  },
  {
    username: "demo-meters",
    displayName: "Mira Demo",
    password: "correct horse battery staple",
    totpSecret: null,
  },
];
