import type { Secret } from "#lib/secret.ts";
import { oneOf, readSecret, type Checked, type Read, type Setting } from "./read-value.ts";

/** Single sign-on for operators: the provider, and how it identifies us. */
export interface OidcSettings {
  readonly issuer: URL;
  readonly clientId: string;
  /** null: a public client, protected only by PKCE. */
  readonly clientSecret: Secret | null;
  readonly scopes: string;
  /** The provider's name on the button. */
  readonly label: string;
  /** Whether our own second factor is required in addition. */
  readonly requireTotp: boolean;
}

export interface SignInSettings {
  /** null: it is not set up. */
  readonly oidc: OidcSettings | null;
  readonly passwordSignIn: boolean;
}

export const SIGN_IN_SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_OIDC_ISSUER",
    type: "URL",
    default: "unset: no single sign-on",
    description:
      "Issuer of the OpenID Connect provider where operators sign in, exactly as in its discovery document; docs/single-sign-on.md.",
  },
  {
    name: "LATCHKEY_OIDC_CLIENT_ID",
    type: "text",
    default: "unset",
    description:
      "Id of the client that is registered there. Its redirect URI is LATCHKEY_PUBLIC_URL + /dashboard/oidc.",
  },
  {
    name: "LATCHKEY_OIDC_CLIENT_SECRET",
    type: "secret",
    default: "from the file; without one, a public client",
    description: "That client's secret.",
    isSecret: true,
  },
  {
    name: "LATCHKEY_OIDC_CLIENT_SECRET_FILE",
    type: "file",
    default: "unset",
    description: "File with that client's secret.",
  },
  {
    name: "LATCHKEY_OIDC_SCOPES",
    type: "list of scopes",
    default: "openid email",
    description: "Requested scopes, separated by spaces. Must include `openid`.",
  },
  {
    name: "LATCHKEY_OIDC_LABEL",
    type: "text",
    default: "single sign-on",
    description: "Text after “Sign in with” on the button of the sign-in page.",
  },
  {
    name: "LATCHKEY_OIDC_REQUIRE_TOTP",
    type: "true | false",
    default: "false",
    description:
      "Whether single sign-on also requires a code from the operator's authenticator app. If not, the provider is responsible for the second factor.",
  },
  {
    name: "LATCHKEY_PASSWORD_SIGN_IN",
    type: "on | off",
    default: "on",
    description:
      "Whether operators may sign in with a password. Can be off only if single sign-on is configured.",
  },
];

/** Reads how operators sign in. Each problem is reported with its remedy. */
export function readSignIn(read: Read, cwd: string, checked: Checked, problems: string[]): SignInSettings {
  const oidc = readOidc(read, cwd, checked, problems);
  const password = checked("LATCHKEY_PASSWORD_SIGN_IN", oneOf(["on", "off"]), "on or off", "on");
  if (password === "off" && oidc === null)
    problems.push(
      "LATCHKEY_PASSWORD_SIGN_IN is off, so nobody could sign in: set LATCHKEY_OIDC_ISSUER and LATCHKEY_OIDC_CLIENT_ID, or unset it.",
    );
  return { oidc, passwordSignIn: password === "on" };
}

function readOidc(read: Read, cwd: string, checked: Checked, problems: string[]): OidcSettings | null {
  const issuer = checked<URL | null>("LATCHKEY_OIDC_ISSUER", readIssuer, ISSUER, null);
  const clientId = checked<string | null>(
    "LATCHKEY_OIDC_CLIENT_ID",
    (text) => (/^[\x20-\x7e]{1,255}$/.test(text) ? text : undefined),
    "1 to 255 printable ASCII characters, as shown by the provider",
    null,
  );
  const settings = {
    clientSecret: readSecret("LATCHKEY_OIDC_CLIENT_SECRET", "the client's secret", { read, cwd, problems }),
    scopes: checked("LATCHKEY_OIDC_SCOPES", readScopes, SCOPES, "openid email"),
    label: checked(
      "LATCHKEY_OIDC_LABEL",
      readLabel,
      "1 to 40 characters without control characters",
      "single sign-on",
    ),
    requireTotp:
      checked("LATCHKEY_OIDC_REQUIRE_TOTP", oneOf(["true", "false"]), "true or false", "false") === "true",
  };
  if (issuer !== null && clientId !== null) return { issuer, clientId, ...settings };
  const isNamed = (name: string): boolean => read(name) !== undefined;
  if (isNamed("LATCHKEY_OIDC_ISSUER") && !isNamed("LATCHKEY_OIDC_CLIENT_ID"))
    problems.push(
      "LATCHKEY_OIDC_ISSUER is set without LATCHKEY_OIDC_CLIENT_ID: set it to the client that is registered there.",
    );
  // An invalid issuer has been reported already.
  if (isNamed("LATCHKEY_OIDC_ISSUER")) return null;
  for (const { name } of SIGN_IN_SETTINGS)
    if (name.startsWith("LATCHKEY_OIDC_") && isNamed(name))
      problems.push(`${name} has no effect unless LATCHKEY_OIDC_ISSUER is set.`);
  return null;
}

const ISSUER =
  "an https URL without user, query or fragment (http for a provider on this machine alone), such as https://login.example.com";
const SCOPES = "names separated by spaces, with openid among them";

/** Kept exactly as written, because it is compared with the provider's documents. */
function readIssuer(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isPlain = url.search === "" && url.hash === "" && url.username === "" && url.password === "";
  const isLocal = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  return isPlain && (url.protocol === "https:" || (url.protocol === "http:" && isLocal)) ? url : undefined;
}

function readScopes(text: string): string | undefined {
  const scopes = text.split(/\s+/);
  // RFC 6749, 3.3.
  const isGood = text.length <= 500 && scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
  return isGood && scopes.includes("openid") ? scopes.join(" ") : undefined;
}

const readLabel = (text: string): string | undefined => (/^[^\p{C}]{1,40}$/u.test(text) ? text : undefined);
