import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed } from "./output.ts";

/** What this installation derives from its signing key: whatever changes something writes an audit entry with it. */
export function openOwnSigning(composition: Composition): Signing {
  const { signingKey, signingKeyFile } = composition.config();
  if (!signingKey)
    throw new CommandFailed(`There is no signing key (${signingKeyFile}). Run \`latchkey init\` first.`);
  return openSigning(readSigningKey(signingKey.reveal()));
}
