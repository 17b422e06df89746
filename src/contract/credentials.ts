import { idempotencyConflict, invalidKey, lacksScope, notFound } from "./failures.ts";
import { EXAMPLE } from "./fields.ts";
import type { Operation } from "./operation.ts";
import { idempotencyKey, inPath } from "./parameters.ts";

export const deleteCredential: Operation = {
  id: "deleteCredential",
  method: "delete",
  path: "/credentials/{credentialId}",
  tag: "Credentials",
  summary: "Delete a credential",
  description:
    "Destroys the secrets for good; the id no longer resolves and later triggers that name it fail. It always goes through, also while runs use the credential: queued runs that need it fail, runs under way stop at their next node. It has no body: what is sent as one is not looked at.",
  parameters: [
    idempotencyKey,
    inPath("credentialId", "The credential's id (`cred_...`).", EXAMPLE.credential),
  ],
  answers: [{ status: 204, description: "Deleted. The body is empty.", headers: ["Idempotent-Replay"] }],
  failures: [
    lacksScope("credentials:delete"),
    notFound(
      "Credential",
      "There is no such credential in the account of the key, or it was deleted before.",
    ),
    idempotencyConflict,
    invalidKey,
  ],
  curl: {
    curl: `curl -sS -i -X DELETE "$BASE_URL/credentials/$CREDENTIAL_ID" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Idempotency-Key: disconnect-user-1234"`,
  },
};
