/** The operators of the installation. docs/decisions/0022: closed roles, default deny. */
export const OPERATOR_ROLES = ["admin", "operator", "reviewer", "viewer"] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

export function isOperatorRole(text: string): text is OperatorRole {
  return (OPERATOR_ROLES as readonly string[]).includes(text);
}

/** The maximum age of a second factor, `limits.operatorStepUpMs` and `limits.operatorLateStepUpMs`. */
export type StepUp = "now" | "lately";

interface Rule {
  readonly roles: readonly OperatorRole[];
  /** Requires the second factor, given within the last five minutes, or half an hour. */
  readonly stepUp?: StepUp;
  /** Only for a person who has signed in: no operator token has it, whatever its role. */
  readonly isPersonal?: true;
  /** It can't be limited to accounts: nobody who is limited to some has it, whatever their role. */
  readonly isOfInstallation?: true;
}

const ALL = OPERATOR_ROLES;

/**
 * The table of all permissions. The router accepts a route of `/operator/v1` only if it refers to a line of this table; a role
 * that the line does not list is refused.
 */
export const PERMISSIONS = {
  /** One's own sign-in, sessions, password and second factor; also before the second factor is set up. */
  "self.manage": { roles: ALL, isPersonal: true },
  /** Signing in a command line that asks for it: seeing who asks, refusing it, and giving it a token with a role that one's own covers. */
  "device.review": { roles: ALL, isPersonal: true },
  "device.approve": { roles: ALL, stepUp: "now", isPersonal: true },
  /** Ending the token that the request is sent with. */
  "token.end": { roles: ALL },
  "run.read": { roles: ALL },
  /** Results of runs are end users' data, like the records of a review. */
  "run.results": { roles: ["admin", "operator", "reviewer"] },
  "run.cancel": { roles: ["admin", "operator"] },
  "run.purge": { roles: ["admin", "operator"], stepUp: "now" },
  "review.read": { roles: ALL },
  /** Records are end users' data. */
  "review.records": { roles: ["admin", "operator", "reviewer"] },
  "review.decide": { roles: ["admin", "operator", "reviewer"] },
  /** Being seen by others at a review. */
  "review.attend": { roles: ["admin", "operator", "reviewer"], isPersonal: true },
  /** Deciding "it did not happen" sends a write again. */
  "write.decide": { roles: ["admin", "operator"], stepUp: "lately" },
  "credential.read": { roles: ["admin", "operator", "viewer"] },
  "credential.unlock": { roles: ["admin", "operator"] },
  "credential.delete": { roles: ["admin", "operator"], stepUp: "now" },
  /** The link of a pending session, which lets its holder fill in the form, and its revocation. */
  "session.manage": { roles: ["admin", "operator"], stepUp: "lately" },
  "config.read": { roles: ["admin", "operator", "viewer"] },
  /** Changing documents changes the origins that credentials may be sent to. */
  "config.apply": { roles: ["admin", "operator"], stepUp: "now" },
  /** Proposals that wait for a second admin. */
  "proposal.confirm": { roles: ["admin"], stepUp: "now", isPersonal: true },
  /** By an admin or by the proposer. */
  "proposal.discard": { roles: ["admin", "operator"] },
  /** Names and origins; no permission shows a value. */
  "secret.read": { roles: ["admin", "operator", "viewer"] },
  "secret.manage": { roles: ["admin", "operator"], stepUp: "now" },
  "webhook.read": { roles: ["admin", "operator", "viewer"] },
  /** An endpoint gets what the API shows of runs and sessions. */
  "webhook.manage": { roles: ["admin", "operator"], stepUp: "now" },
  "webhook.resend": { roles: ["admin", "operator"] },
  "schedule.read": { roles: ["admin", "operator", "viewer"] },
  /** Pausing and resuming. */
  "schedule.manage": { roles: ["admin", "operator"] },
  /** Rerunning a run, beginning one of a schedule, and testing a login. */
  "run.trigger": { roles: ["admin", "operator"] },
  /** Trying a Blueprint: the run is on record as the operator's. Programs trigger runs with API keys. */
  "run.try": { roles: ["admin", "operator"], isPersonal: true },
  "key.read": { roles: ["admin", "operator"] },
  "key.manage": { roles: ["admin"], stepUp: "now" },
  "audit.read": { roles: ["admin", "operator"] },
  "system.read": { roles: ["admin", "operator", "viewer"], isOfInstallation: true },
  "operator.read": { roles: ["admin"], isOfInstallation: true },
  "operator.manage": { roles: ["admin"], stepUp: "now", isPersonal: true, isOfInstallation: true },
  "token.read": { roles: ["admin"], isOfInstallation: true },
  /** A token that could create another would never end. */
  "token.manage": { roles: ["admin"], stepUp: "now", isPersonal: true, isOfInstallation: true },
} as const satisfies Readonly<Record<string, Rule>>;

export type Permission = keyof typeof PERMISSIONS;

export function mayDo(role: OperatorRole, permission: Permission): boolean {
  return (PERMISSIONS[permission].roles as readonly OperatorRole[]).includes(role);
}

/** Whether a role has all the permissions of another. */
export const coversRole = (role: OperatorRole, other: OperatorRole): boolean =>
  (Object.keys(PERMISSIONS) as Permission[]).every((each) => !mayDo(other, each) || mayDo(role, each));

/** The permissions that no operator token has. */
export type PersonalPermission = {
  [P in Permission]: (typeof PERMISSIONS)[P] extends { readonly isPersonal: true } ? P : never;
}[Permission];

export function isPersonal(permission: Permission): permission is PersonalPermission {
  const rule: Rule = PERMISSIONS[permission];
  return rule.isPersonal === true;
}

export function isOfInstallation(permission: Permission): boolean {
  const rule: Rule = PERMISSIONS[permission];
  return rule.isOfInstallation === true;
}

/** null: none is required. An action that leads to writes may still require one. */
export function stepUpOf(permission: Permission): StepUp | null {
  const rule: Rule = PERMISSIONS[permission];
  return rule.stepUp ?? null;
}

/** docs/decisions/0022: the second factor is mandatory for those who can take over the installation. */
export function mustHaveSecondFactor(role: OperatorRole): boolean {
  return role === "admin";
}

/** The visible properties of an operator. */
export interface OperatorView {
  readonly id: string;
  readonly email: string;
  readonly role: OperatorRole;
  /** The names of the accounts that the operator is limited to; null: all. */
  readonly accounts: readonly string[] | null;
  readonly createdAt: Date;
  readonly disabledAt: Date | null;
  readonly hasSecondFactor: boolean;
  /** When the operator was linked to an identity at the single sign-on provider. */
  readonly oidcLinkedAt: Date | null;
  /** Null: never. */
  readonly signedInAt: Date | null;
}

/** How a session was opened. */
export const SIGN_IN_WAYS = ["password", "oidc"] as const;
export type SignInWay = (typeof SIGN_IN_WAYS)[number];

/** Names are compared without regard to case and surrounding space. */
export function normaliseOperatorName(text: string): string {
  return text.trim().normalize("NFC").toLowerCase();
}

/**
 * The operator's name that an email address of another system matches, or null. Only ASCII letters are folded to lower case:
 * Unicode folds other characters onto them (U+212A becomes `k`), and another person's address would match this operator.
 */
export function linkableName(email: string): string | null {
  return /^[\x21-\x7e]+$/.test(email) ? email.toLowerCase() : null;
}

const NAME = /^[^\s@\p{C}]{1,120}@[^\s@\p{C}]{1,120}$/u;

export function isOperatorName(text: string): boolean {
  return NAME.test(text);
}

const PASSWORD_CHARACTERS = { min: 12, max: 256 };

/** The problem with a new password, as a message that never quotes it; null: it is valid. */
export function explainPassword(password: string, email: string): string | null {
  const length = Array.from(password).length;
  if (length < PASSWORD_CHARACTERS.min || length > PASSWORD_CHARACTERS.max)
    return `A password must have ${PASSWORD_CHARACTERS.min} to ${PASSWORD_CHARACTERS.max} characters.`;
  if (new Set(password).size < 5) return "The password has too few different characters.";
  if (password.toLowerCase().includes(email.toLowerCase())) return "The password contains the email.";
  return null;
}
