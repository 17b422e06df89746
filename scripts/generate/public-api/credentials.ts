import { idempotencyConflict, invalidKey, lacksScope, notFound } from "#contract/failures.ts";
import { EXAMPLE } from "#contract/fields.ts";
import type { Operation } from "#contract/operation.ts";
import { idempotencyKey, inPath } from "#contract/parameters.ts";

export const deleteCredential: Operation = {
  id: "deleteCredential",
  method: "delete",
  path: "/credentials/{credentialId}",
  tag: "Credentials",
  summary: "Delete a credential",
  description:
    "Permanently destroys the secrets. The id no longer resolves, and later triggers with it fail. A credential can also be deleted while runs use it: queued runs that need it fail, and runs in progress stop at their next node. A request body is ignored.",
  parameters: [
    idempotencyKey,
    inPath("credentialId", "The credential's id (`cred_...`).", EXAMPLE.credential),
  ],
  answers: [{ status: 204, description: "Deleted. The body is empty.", headers: ["Idempotent-Replay"] }],
  failures: [
    lacksScope("credentials:delete"),
    notFound("Credential", "The API key's account has no such credential, or it was deleted before."),
    idempotencyConflict,
    invalidKey,
  ],
  curl: {
    curl: `curl -sS -i -X DELETE "$BASE_URL/credentials/$CREDENTIAL_ID" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Idempotency-Key: disconnect-user-1234"`,
  },
};
