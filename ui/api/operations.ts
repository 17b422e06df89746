// Written by `npm run generate` from src/contract/operator/: the operations of the operator API, in the order of its document.
import type * as accounts from "#contract/operator/accounts.ts";
import type * as audit from "#contract/operator/audit.ts";
import type * as blueprints from "#contract/operator/blueprints.ts";
import type * as config from "#contract/operator/config.ts";
import type * as credentials from "#contract/operator/credentials.ts";
import type * as devices from "#contract/operator/devices.ts";
import type * as events from "#contract/operator/events.ts";
import type * as finding from "#contract/operator/finding.ts";
import type * as keys from "#contract/operator/keys.ts";
import type * as live from "#contract/operator/live.ts";
import type * as nodes from "#contract/operator/nodes.ts";
import type * as oidc from "#contract/operator/oidc.ts";
import type * as operators from "#contract/operator/operators.ts";
import type * as proposals from "#contract/operator/proposals.ts";
import type * as reviews from "#contract/operator/reviews.ts";
import type * as runs from "#contract/operator/runs.ts";
import type * as schedules from "#contract/operator/schedules.ts";
import type * as secrets from "#contract/operator/secrets.ts";
import type * as session from "#contract/operator/session.ts";
import type * as strategies from "#contract/operator/strategies.ts";
import type * as system from "#contract/operator/system.ts";
import type * as tokens from "#contract/operator/tokens.ts";
import type * as webhooks from "#contract/operator/webhooks.ts";
import type * as writes from "#contract/operator/writes.ts";
import { endpoint } from "./request.ts";

export const signIn = endpoint<typeof session.signIn>("post", "/session");
export const readSignInMethods = endpoint<typeof oidc.readSignInMethods>("get", "/session/methods");
export const beginOidcSignIn = endpoint<typeof oidc.beginOidcSignIn>("post", "/session/oidc/begin");
export const finishOidcSignIn = endpoint<typeof oidc.finishOidcSignIn>("post", "/session/oidc");
export const beginOidcStepUp = endpoint<typeof oidc.beginOidcStepUp>("post", "/session/step-up/oidc/begin");
export const finishOidcStepUp = endpoint<typeof oidc.finishOidcStepUp>("post", "/session/step-up/oidc");
export const beginDeviceSignIn = endpoint<typeof devices.beginDeviceSignIn>("post", "/session/device");
export const pollDeviceSignIn = endpoint<typeof devices.pollDeviceSignIn>("post", "/session/device/token");
export const readDeviceSignIn = endpoint<typeof devices.readDeviceSignIn>(
  "get",
  "/device-sign-ins/{userCode}",
);
export const approveDeviceSignIn = endpoint<typeof devices.approveDeviceSignIn>(
  "post",
  "/device-sign-ins/{userCode}/approve",
);
export const denyDeviceSignIn = endpoint<typeof devices.denyDeviceSignIn>(
  "post",
  "/device-sign-ins/{userCode}/deny",
);
export const signOut = endpoint<typeof session.signOut>("delete", "/session");
export const stepUp = endpoint<typeof session.stepUp>("post", "/session/step-up");
export const readMe = endpoint<typeof session.readMe>("get", "/me");
export const listOwnSessions = endpoint<typeof session.listOwnSessions>("get", "/me/sessions");
export const endOwnSession = endpoint<typeof session.endOwnSession>("delete", "/me/sessions/{sessionId}");
export const changePassword = endpoint<typeof session.changePassword>("post", "/me/password");
export const beginSecondFactor = endpoint<typeof session.beginSecondFactor>("post", "/me/second-factor");
export const confirmSecondFactor = endpoint<typeof session.confirmSecondFactor>(
  "post",
  "/me/second-factor/confirm",
);
export const renewRecoveryCodes = endpoint<typeof session.renewRecoveryCodes>("post", "/me/recovery-codes");
export const listOperators = endpoint<typeof operators.listOperators>("get", "/operators");
export const createOperator = endpoint<typeof operators.createOperator>("post", "/operators");
export const disableOperator = endpoint<typeof operators.disableOperator>(
  "post",
  "/operators/{operatorId}/disable",
);
export const enableOperator = endpoint<typeof operators.enableOperator>(
  "post",
  "/operators/{operatorId}/enable",
);
export const changeRole = endpoint<typeof operators.changeRole>("post", "/operators/{operatorId}/role");
export const changeOperatorAccounts = endpoint<typeof operators.changeOperatorAccounts>(
  "post",
  "/operators/{operatorId}/accounts",
);
export const resetPassword = endpoint<typeof operators.resetPassword>(
  "post",
  "/operators/{operatorId}/reset-password",
);
export const resetSecondFactor = endpoint<typeof operators.resetSecondFactor>(
  "post",
  "/operators/{operatorId}/reset-second-factor",
);
export const unlinkOperator = endpoint<typeof operators.unlinkOperator>(
  "post",
  "/operators/{operatorId}/unlink",
);
export const listTokens = endpoint<typeof tokens.listTokens>("get", "/tokens");
export const createToken = endpoint<typeof tokens.createToken>("post", "/tokens");
export const endOwnToken = endpoint<typeof tokens.endOwnToken>("delete", "/tokens/own");
export const revokeToken = endpoint<typeof tokens.revokeToken>("post", "/tokens/{tokenId}/revoke");
export const listRuns = endpoint<typeof runs.listRuns>("get", "/runs");
export const listFailures = endpoint<typeof finding.listFailures>("get", "/failures");
export const search = endpoint<typeof finding.search>("get", "/search");
export const readRun = endpoint<typeof runs.readRun>("get", "/runs/{runId}");
export const watchChanges = endpoint<typeof events.watchChanges>("get", "/events");
export const cancelRun = endpoint<typeof runs.cancelRun>("post", "/runs/{runId}/cancel");
export const purgeRun = endpoint<typeof runs.purgeRun>("post", "/runs/{runId}/purge");
export const readRunAgain = endpoint<typeof runs.readRunAgain>("get", "/runs/{runId}/run-again");
export const runAgain = endpoint<typeof runs.runAgain>("post", "/runs/{runId}/run-again");
export const readRunGraph = endpoint<typeof runs.readRunGraph>("get", "/runs/{runId}/graph");
export const compareRun = endpoint<typeof nodes.compareRun>("get", "/runs/{runId}/comparison");
export const readNodeSample = endpoint<typeof nodes.readNodeSample>(
  "get",
  "/runs/{runId}/nodes/{node}/records",
);
export const readRunInput = endpoint<typeof nodes.readRunInput>("get", "/runs/{runId}/inputs/{refKey}");
export const listResultRecords = endpoint<typeof runs.listResultRecords>(
  "get",
  "/runs/{runId}/results/{resultKey}/records",
);
export const downloadResult = endpoint<typeof runs.downloadResult>(
  "get",
  "/runs/{runId}/results/{resultKey}/download",
);
export const readPicture = endpoint<typeof runs.readPicture>(
  "get",
  "/runs/{runId}/nodes/{node}/pictures/{index}",
);
export const watchRunPage = endpoint<typeof live.watchRunPage>("post", "/runs/{runId}/live");
export const readLivePicture = endpoint<typeof live.readLivePicture>("get", "/runs/{runId}/live/picture");
export const listReviews = endpoint<typeof reviews.listReviews>("get", "/reviews");
export const readReview = endpoint<typeof reviews.readReview>("get", "/reviews/{reviewId}");
export const listReviewRecords = endpoint<typeof reviews.listReviewRecords>(
  "get",
  "/reviews/{reviewId}/records",
);
export const approveReview = endpoint<typeof reviews.approveReview>("post", "/reviews/{reviewId}/approve");
export const rejectReview = endpoint<typeof reviews.rejectReview>("post", "/reviews/{reviewId}/reject");
export const noteAtReview = endpoint<typeof reviews.noteAtReview>("post", "/reviews/{reviewId}/presence");
export const listCredentials = endpoint<typeof credentials.listCredentials>("get", "/credentials");
export const readCredential = endpoint<typeof credentials.readCredential>(
  "get",
  "/credentials/{credentialId}",
);
export const unlockCredential = endpoint<typeof credentials.unlockCredential>(
  "post",
  "/credentials/{credentialId}/unlock",
);
export const testLogin = endpoint<typeof credentials.testLogin>(
  "post",
  "/credentials/{credentialId}/test-login",
);
export const requestCredential = endpoint<typeof credentials.requestCredential>(
  "post",
  "/credentials/{credentialId}/request",
);
export const deleteCredential = endpoint<typeof credentials.deleteCredential>(
  "delete",
  "/credentials/{credentialId}",
);
export const listCredentialSessions = endpoint<typeof credentials.listCredentialSessions>(
  "get",
  "/credential-sessions",
);
export const readCredentialSession = endpoint<typeof credentials.readCredentialSession>(
  "get",
  "/credential-sessions/{sessionId}",
);
export const linkCredentialSession = endpoint<typeof credentials.linkCredentialSession>(
  "post",
  "/credential-sessions/{sessionId}/link",
);
export const revokeCredentialSession = endpoint<typeof credentials.revokeCredentialSession>(
  "post",
  "/credential-sessions/{sessionId}/revoke",
);
export const listSchedules = endpoint<typeof schedules.listSchedules>("get", "/schedules");
export const readSchedule = endpoint<typeof schedules.readSchedule>("get", "/schedules/{scheduleId}");
export const pauseSchedule = endpoint<typeof schedules.pauseSchedule>(
  "post",
  "/schedules/{scheduleId}/pause",
);
export const resumeSchedule = endpoint<typeof schedules.resumeSchedule>(
  "post",
  "/schedules/{scheduleId}/resume",
);
export const runSchedule = endpoint<typeof schedules.runSchedule>("post", "/schedules/{scheduleId}/run");
export const listWrites = endpoint<typeof writes.listWrites>("get", "/writes");
export const decideWrite = endpoint<typeof writes.decideWrite>(
  "post",
  "/runs/{runId}/writes/{node}/{record}/decide",
);
export const listWriteGroups = endpoint<typeof writes.listWriteGroups>("get", "/write-groups");
export const decideWriteGroup = endpoint<typeof writes.decideWriteGroup>("post", "/write-groups/decide");
export const readOverview = endpoint<typeof system.readOverview>("get", "/overview");
export const readSystem = endpoint<typeof system.readSystem>("get", "/system");
export const listAccounts = endpoint<typeof accounts.listAccounts>("get", "/accounts");
export const readAccount = endpoint<typeof accounts.readAccount>("get", "/accounts/{account}");
export const changeAccount = endpoint<typeof accounts.changeAccount>("post", "/accounts/{account}");
export const listAudit = endpoint<typeof audit.listAudit>("get", "/audit");
export const listAuditChains = endpoint<typeof audit.listAuditChains>("get", "/audit/chains");
export const verifyAuditChain = endpoint<typeof audit.verifyAuditChain>(
  "get",
  "/audit/chains/{chain}/verify",
);
export const exportAudit = endpoint<typeof audit.exportAudit>("get", "/audit/export");
export const checkConfig = endpoint<typeof config.checkConfig>("post", "/config/check");
export const planConfig = endpoint<typeof config.planConfig>("post", "/config/plan");
export const applyConfig = endpoint<typeof config.applyConfig>("post", "/config/apply");
export const exportConfig = endpoint<typeof config.exportConfig>("get", "/config/export");
export const readConfigSchema = endpoint<typeof config.readConfigSchema>("get", "/config/schema");
export const listProposals = endpoint<typeof proposals.listProposals>("get", "/proposals");
export const readProposal = endpoint<typeof proposals.readProposal>("get", "/proposals/{proposalId}");
export const confirmProposal = endpoint<typeof proposals.confirmProposal>(
  "post",
  "/proposals/{proposalId}/confirm",
);
export const discardProposal = endpoint<typeof proposals.discardProposal>(
  "post",
  "/proposals/{proposalId}/discard",
);
export const listBlueprints = endpoint<typeof blueprints.listBlueprints>("get", "/blueprints");
export const readBlueprint = endpoint<typeof blueprints.readBlueprint>(
  "get",
  "/accounts/{account}/blueprints/{blueprintKey}",
);
export const readBlueprintHealth = endpoint<typeof blueprints.readBlueprintHealth>(
  "get",
  "/accounts/{account}/blueprints/{blueprintKey}/health",
);
export const listBlueprintVersions = endpoint<typeof blueprints.listBlueprintVersions>(
  "get",
  "/accounts/{account}/blueprints/{blueprintKey}/versions",
);
export const readBlueprintVersion = endpoint<typeof blueprints.readBlueprintVersion>(
  "get",
  "/accounts/{account}/blueprints/{blueprintKey}/versions/{version}",
);
export const publishBlueprintVersion = endpoint<typeof blueprints.publishBlueprintVersion>(
  "post",
  "/accounts/{account}/blueprints/{blueprintKey}/versions/{version}/publish",
);
export const retireBlueprint = endpoint<typeof blueprints.retireBlueprint>(
  "post",
  "/accounts/{account}/blueprints/{blueprintKey}/retire",
);
export const restoreBlueprint = endpoint<typeof blueprints.restoreBlueprint>(
  "post",
  "/accounts/{account}/blueprints/{blueprintKey}/restore",
);
export const startRun = endpoint<typeof blueprints.startRun>(
  "post",
  "/accounts/{account}/blueprints/{blueprintKey}/runs",
);
export const listStrategies = endpoint<typeof strategies.listStrategies>("get", "/strategies");
export const readStrategy = endpoint<typeof strategies.readStrategy>(
  "get",
  "/accounts/{account}/strategies/{strategyId}",
);
export const previewForm = endpoint<typeof strategies.previewForm>("post", "/strategies/preview");
export const listStrategyVersions = endpoint<typeof strategies.listStrategyVersions>(
  "get",
  "/accounts/{account}/strategies/{strategyId}/versions",
);
export const readStrategyVersion = endpoint<typeof strategies.readStrategyVersion>(
  "get",
  "/accounts/{account}/strategies/{strategyId}/versions/{version}",
);
export const publishStrategyVersion = endpoint<typeof strategies.publishStrategyVersion>(
  "post",
  "/accounts/{account}/strategies/{strategyId}/versions/{version}/publish",
);
export const retireStrategy = endpoint<typeof strategies.retireStrategy>(
  "post",
  "/accounts/{account}/strategies/{strategyId}/retire",
);
export const restoreStrategy = endpoint<typeof strategies.restoreStrategy>(
  "post",
  "/accounts/{account}/strategies/{strategyId}/restore",
);
export const listKeys = endpoint<typeof keys.listKeys>("get", "/keys");
export const createKey = endpoint<typeof keys.createKey>("post", "/keys");
export const rotateKey = endpoint<typeof keys.rotateKey>("post", "/keys/{keyId}/rotate");
export const revokeKey = endpoint<typeof keys.revokeKey>("post", "/keys/{keyId}/revoke");
export const listSecrets = endpoint<typeof secrets.listSecrets>("get", "/secrets");
export const setSecret = endpoint<typeof secrets.setSecret>("post", "/secrets");
export const deleteSecret = endpoint<typeof secrets.deleteSecret>("delete", "/secrets/{account}/{secret}");
export const listWebhooks = endpoint<typeof webhooks.listWebhooks>("get", "/webhooks");
export const createWebhook = endpoint<typeof webhooks.createWebhook>("post", "/webhooks");
export const updateWebhook = endpoint<typeof webhooks.updateWebhook>("post", "/webhooks/{webhookId}");
export const rotateWebhook = endpoint<typeof webhooks.rotateWebhook>("post", "/webhooks/{webhookId}/rotate");
export const disableWebhook = endpoint<typeof webhooks.disableWebhook>(
  "post",
  "/webhooks/{webhookId}/disable",
);
export const enableWebhook = endpoint<typeof webhooks.enableWebhook>("post", "/webhooks/{webhookId}/enable");
export const deleteWebhook = endpoint<typeof webhooks.deleteWebhook>("delete", "/webhooks/{webhookId}");
export const listWebhookDeliveries = endpoint<typeof webhooks.listWebhookDeliveries>(
  "get",
  "/webhooks/{webhookId}/deliveries",
);
export const readWebhookDelivery = endpoint<typeof webhooks.readWebhookDelivery>(
  "get",
  "/webhooks/{webhookId}/deliveries/{eventId}",
);
export const resendWebhook = endpoint<typeof webhooks.resendWebhook>(
  "post",
  "/webhooks/{webhookId}/deliveries/{eventId}/resend",
);
export const resendFailedWebhooks = endpoint<typeof webhooks.resendFailedWebhooks>(
  "post",
  "/webhooks/{webhookId}/resend-failed",
);
export const pingWebhook = endpoint<typeof webhooks.pingWebhook>("post", "/webhooks/{webhookId}/ping");
export const triggerWebhookEvent = endpoint<typeof webhooks.triggerWebhookEvent>("post", "/webhooks/trigger");
