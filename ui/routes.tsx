import { lazy, type ComponentType } from "react";

/** The groups of the navigation, in their order. */
export const GROUPS = ["Work", "Set up", "Manage"] as const;

export interface Route {
  /** Below `/dashboard`; a page reads its parameters with `useParams`. */
  readonly path: string;
  readonly title: string;
  /** The permission that is needed to see the page and the link to it; `null`: none. */
  readonly permission: string | null;
  /** The page's place in the navigation, with the key that opens it after `g`; undefined: not listed. */
  readonly nav?: { readonly group: (typeof GROUPS)[number]; readonly key: string };
  readonly page: ComponentType;
}

/** Loaded when it is first opened. */
const page = (load: () => Promise<ComponentType>): ComponentType =>
  lazy(async () => ({ default: await load() }));

/** Every page: one line and one file per page. Put the more specific path first. */
export const ROUTES: readonly Route[] = [
  {
    path: "/",
    title: "Overview",
    permission: null,
    nav: { group: "Work", key: "o" },
    page: page(async () => (await import("./pages/overview.tsx")).OverviewPage),
  },
  {
    path: "/runs",
    title: "Runs",
    permission: "run.read",
    nav: { group: "Work", key: "r" },
    page: page(async () => (await import("./pages/run-list.tsx")).RunListPage),
  },
  {
    path: "/runs/:runId",
    title: "Run",
    permission: "run.read",
    page: page(async () => (await import("./pages/run.tsx")).RunPage),
  },
  {
    path: "/schedules",
    title: "Schedules",
    permission: "schedule.read",
    nav: { group: "Work", key: "d" },
    page: page(async () => (await import("./pages/schedule-list.tsx")).ScheduleListPage),
  },
  {
    path: "/schedules/:scheduleId",
    title: "Schedule",
    permission: "schedule.read",
    page: page(async () => (await import("./pages/schedule.tsx")).SchedulePage),
  },
  {
    path: "/reviews",
    title: "Reviews",
    permission: "review.read",
    nav: { group: "Work", key: "v" },
    page: page(async () => (await import("./pages/review-list.tsx")).ReviewListPage),
  },
  {
    path: "/reviews/:reviewId",
    title: "Review",
    permission: "review.read",
    page: page(async () => (await import("./pages/review.tsx")).ReviewPage),
  },
  {
    path: "/writes",
    title: "Uncertain writes",
    permission: "review.read",
    nav: { group: "Work", key: "u" },
    page: page(async () => (await import("./pages/write-list.tsx")).WriteListPage),
  },
  {
    path: "/proposals",
    title: "Proposals",
    permission: "config.read",
    nav: { group: "Work", key: "w" },
    page: page(async () => (await import("./pages/proposal-list.tsx")).ProposalListPage),
  },
  {
    path: "/proposals/:proposalId",
    title: "Proposal",
    permission: "config.read",
    page: page(async () => (await import("./pages/proposal.tsx")).ProposalPage),
  },
  {
    path: "/blueprints",
    title: "Blueprints",
    permission: "config.read",
    nav: { group: "Set up", key: "b" },
    page: page(async () => (await import("./pages/blueprint-list.tsx")).BlueprintListPage),
  },
  {
    path: "/blueprints/new",
    title: "New Blueprint",
    permission: "config.apply",
    page: page(async () => (await import("./pages/new-document.tsx")).NewBlueprintPage),
  },
  {
    path: "/blueprints/:account/:name",
    title: "Blueprint",
    permission: "config.read",
    page: page(async () => (await import("./pages/blueprint.tsx")).BlueprintPage),
  },
  {
    path: "/strategies",
    title: "Strategies",
    permission: "config.read",
    nav: { group: "Set up", key: "s" },
    page: page(async () => (await import("./pages/strategy-list.tsx")).StrategyListPage),
  },
  {
    path: "/strategies/new",
    title: "New strategy",
    permission: "config.apply",
    page: page(async () => (await import("./pages/new-document.tsx")).NewStrategyPage),
  },
  {
    path: "/strategies/:account/:name",
    title: "Strategy",
    permission: "config.read",
    page: page(async () => (await import("./pages/strategy.tsx")).StrategyPage),
  },
  {
    path: "/credentials",
    title: "Credentials",
    permission: "credential.read",
    nav: { group: "Set up", key: "c" },
    page: page(async () => (await import("./pages/credential-list.tsx")).CredentialListPage),
  },
  {
    path: "/credentials/:credentialId",
    title: "Credential",
    permission: "credential.read",
    page: page(async () => (await import("./pages/credential.tsx")).CredentialPage),
  },
  {
    path: "/sessions",
    title: "Sessions",
    permission: "credential.read",
    nav: { group: "Set up", key: "e" },
    page: page(async () => (await import("./pages/session-list.tsx")).SessionListPage),
  },
  {
    path: "/sessions/:sessionId",
    title: "Session",
    permission: "credential.read",
    page: page(async () => (await import("./pages/session.tsx")).SessionPage),
  },
  {
    path: "/secrets",
    title: "Account secrets",
    permission: "secret.read",
    nav: { group: "Set up", key: "t" },
    page: page(async () => (await import("./pages/secret-list.tsx")).SecretListPage),
  },
  {
    path: "/accounts",
    title: "Accounts",
    permission: "config.read",
    nav: { group: "Manage", key: "a" },
    page: page(async () => (await import("./pages/account-list.tsx")).AccountListPage),
  },
  {
    path: "/accounts/:account",
    title: "Account",
    permission: "config.read",
    page: page(async () => (await import("./pages/account.tsx")).AccountPage),
  },
  {
    path: "/keys",
    title: "API keys",
    permission: "key.read",
    nav: { group: "Manage", key: "k" },
    page: page(async () => (await import("./pages/key-list.tsx")).KeyListPage),
  },
  {
    path: "/webhooks",
    title: "Webhooks",
    permission: "webhook.read",
    nav: { group: "Manage", key: "h" },
    page: page(async () => (await import("./pages/webhook-list.tsx")).WebhookListPage),
  },
  {
    path: "/webhooks/:webhookId",
    title: "Webhook endpoint",
    permission: "webhook.read",
    page: page(async () => (await import("./pages/webhook.tsx")).WebhookPage),
  },
  {
    path: "/audit",
    title: "Audit log",
    permission: "audit.read",
    nav: { group: "Manage", key: "l" },
    page: page(async () => (await import("./pages/audit-log.tsx")).AuditLogPage),
  },
  {
    path: "/operators",
    title: "Operators",
    permission: "operator.read",
    nav: { group: "Manage", key: "p" },
    page: page(async () => (await import("./pages/operator-list.tsx")).OperatorListPage),
  },
  {
    path: "/tokens",
    title: "Operator tokens",
    permission: "token.read",
    nav: { group: "Manage", key: "n" },
    page: page(async () => (await import("./pages/token-list.tsx")).TokenListPage),
  },
  {
    path: "/device",
    title: "Sign in a command line",
    permission: "device.review",
    page: page(async () => (await import("./pages/device-sign-in.tsx")).DeviceSignInPage),
  },
  {
    path: "/system",
    title: "System",
    permission: "system.read",
    nav: { group: "Manage", key: "y" },
    page: page(async () => (await import("./pages/system.tsx")).SystemPage),
  },
  {
    path: "/me",
    title: "Your account",
    permission: null,
    page: page(async () => (await import("./pages/own-sign-in.tsx")).OwnSignInPage),
  },
];
