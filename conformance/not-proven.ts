/** What no black-box case can bring about within seconds. It is not proven by this suite; the service's own tests prove it. */
export interface NotProven {
  /** Section and words, as in a citation. */
  readonly sentence: string;
  readonly needs: "the clock" | "the operator" | "a fault of the service";
}

export const NOT_PROVEN: readonly NotProven[] = [
  {
    sentence:
      'Credential session status: "pending | no | expiry | expires_at reached | expired | hosted_url becomes null"',
    needs: "the clock",
  },
  {
    sentence:
      'Credential session status 2: "expired is terminal and unusable; a new session must be created"',
    needs: "the clock",
  },
  { sentence: 'Limits: "Idempotent replay window | 24 hours"', needs: "the clock" },
  { sentence: 'Idempotency 2: "the response is stored with the key for 24 hours"', needs: "the clock" },
  { sentence: 'Limits: "Presigned URL lifetime | two hours"', needs: "the clock" },
  {
    sentence: 'GET /blueprint-runs/{runId}/results 2: "Presigned URLs expire after two hours"',
    needs: "the clock",
  },
  {
    sentence:
      'GET /blueprint-runs/{runId}/results 4: "After the run\'s data has been purged the endpoint returns 400"',
    needs: "the clock",
  },
  { sentence: 'Errors: "400 after purge"', needs: "the clock" },
  { sentence: 'Credential: "Field values are encrypted at rest"', needs: "the operator" },
  {
    sentence: 'POST /credential-sessions: "Label for the vaulted credential in the operator dashboard"',
    needs: "the operator",
  },
  {
    sentence: 'POST /blueprints/{blueprintKey}/trigger: "Display name of the run in the operator dashboard"',
    needs: "the operator",
  },
  {
    sentence: 'Blueprint run status: "the run proceeds once someone acts on it in the operator dashboard"',
    needs: "the operator",
  },
  { sentence: 'Errors: "500 | internal_error | Unexpected server error"', needs: "a fault of the service" },
];
