import { isPlainPublic } from "#outbound/plain-http.ts";
import { oneOf, readPlainUrl, type Checked } from "./read-value.ts";

export interface PublicUrlSettings {
  /** The URL at which callers and end users reach the service, without a trailing slash. null: derived from the host and the port in use. */
  readonly publicUrl: string | null;
  /** Whether `publicUrl` and the URL of another machine's service may be `http:` even though anyone on the path can read the traffic. */
  readonly insecure: boolean;
}

export function readPublicUrl(checked: Checked, problems: string[]): PublicUrlSettings {
  const publicUrl = checked<string | null>(
    "LATCHKEY_PUBLIC_URL",
    readPlainUrl,
    "an http or https URL without query",
    null,
  );
  const insecure =
    checked("LATCHKEY_INSECURE", oneOf(["true", "false"]), "true or false", "false") === "true";
  if (publicUrl !== null && isPlainPublic(publicUrl) && !insecure)
    problems.push(
      "LATCHKEY_PUBLIC_URL is public and not encrypted: credentials, keys and sign-ins would cross the internet unencrypted. Put a proxy " +
        "with TLS in front and use https://, or set LATCHKEY_INSECURE=true to accept this.",
    );
  return { publicUrl, insecure };
}
