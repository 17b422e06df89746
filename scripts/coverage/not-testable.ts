/** Sentences of the interface that no test can cite, each with the reason. The first form is that of a citation. */
export interface NotTestable {
  readonly citation: string;
  readonly reason: string;
}

const LEAD_IN = "introduces the lines below it, which are cited themselves";
const NOT_SHOWN = "says that something is not described";
const DEFINITION = "defines a word";
const ADVICE = "advice to clients";

const REASONS: readonly (readonly [reason: string, citations: readonly string[]])[] = [
  [
    DEFINITION,
    [
      'Spec, Conventions: "This document covers the whole service"',
      'Spec, Conventions: "Values in examples are placeholders"',
      'Spec, What the service does 2: "A Blueprint is a workflow configured together with the service operator"',
      'Spec, What the service does 4: "The service does not keep the mapping between the caller\'s users and credentials"',
      'Spec, Versioning: "are open string sets and may gain values without a version change"',
      'Spec, Credential session status 3: "The status is an open string set"',
      'Spec, Credential session status 3: "Additional non-terminal statuses may appear between collection and completed"',
      'Spec, Errors: "error.code is an open string set"',
    ],
  ],
  [
    ADVICE,
    [
      'Spec, What the service does 4: "The caller stores the credential id"',
      'Spec, Credential session status 3: "Clients keep polling on any unrecognised status"',
      'Spec, Credential session status 4: "credential_id must be persisted only when status is completed"',
      'Spec, Blueprint run status: "Unknown values are treated as a neutral in-progress state"',
      'Spec, GET /credential-sessions/{id}: "Without a return_url, polling starts when the form is opened"',
      'Spec, Errors: "Clients branch on known codes and fall back to a generic retry path"',
      'Spec, Idempotency 1: "The key should identify the logical operation"',
      'Spec, Versioning: "Clients must tolerate unknown values"',
    ],
  ],
  [
    LEAD_IN,
    [
      'Spec, Credential session status: "Rules:"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Rules:"',
      'Spec, GET /blueprint-runs/{runId}/results: "Rules:"',
    ],
  ],
  [
    NOT_SHOWN,
    [
      'Spec, Authentication strategy: "Field definitions of a strategy: not shown"',
      'Spec, Embedded credential session: "Its fields: not shown"',
      'Spec, Blueprint: "The full configuration structure: not shown beyond these"',
      'Spec, Blueprint run status: "Transitions between run statuses: not shown"',
      'Spec, POST /credential-sessions: "Success status code: not shown"',
      'Spec, Embedded credential session endpoints: "Endpoints of the embedded credential capture flow (tag for ecs_ ids): not shown"',
      'Spec, Authentication 6: "How API keys are issued or rotated: not shown"',
      'Spec, Events: "Server-to-server event delivery (webhooks or similar): not shown"',
      'Spec, Events: "Browser lifecycle events of the embedded widget: names and payloads not shown"',
      'Spec, Idempotency: "Rate limit values: not shown"',
      'Spec, Idempotency: "Maximum request or upload size: not shown"',
      'Spec, Versioning: "Compatibility and deprecation policy for the version: not shown"',
    ],
  ],
  [
    "no request can show that a GET or DELETE has no body: what is sent as one is not looked at",
    [
      'Spec, GET /credential-sessions/{id}: "No body."',
      'Spec, GET /blueprint-runs/{runId}/status: "No body."',
    ],
  ],
];

export const NOT_TESTABLE: readonly NotTestable[] = REASONS.flatMap(([reason, citations]) =>
  citations.map((citation) => ({ citation, reason })),
);
