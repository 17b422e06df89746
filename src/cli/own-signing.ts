import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed } from "./output.ts";

/** The keys that this installation derives from its signing key. Every command that changes something signs an audit entry with them. */
export function openOwnSigning(composition: Composition): Signing {
  const { signingKey, signingKeyFile } = composition.config();
  if (!signingKey)
    throw new CommandFailed(`There is no signing key (${signingKeyFile}). Run \`latchkey init\` first.`);
  return openSigning(readSigningKey(signingKey.reveal()));
}
