import * as accounts from "#contract/operator/accounts.ts";
import * as audit from "#contract/operator/audit.ts";
import * as blueprints from "#contract/operator/blueprints.ts";
import * as config from "#contract/operator/config.ts";
import * as credentials from "#contract/operator/credentials.ts";
import * as events from "#contract/operator/events.ts";
import * as finding from "#contract/operator/finding.ts";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import * as nodes from "#contract/operator/nodes.ts";
import * as oidc from "#contract/operator/oidc.ts";
import * as operators from "#contract/operator/operators.ts";
import * as keys from "#contract/operator/keys.ts";
import * as proposals from "#contract/operator/proposals.ts";
import * as reviews from "#contract/operator/reviews.ts";
import * as runs from "#contract/operator/runs.ts";
import * as secrets from "#contract/operator/secrets.ts";
import * as session from "#contract/operator/session.ts";
import * as strategies from "#contract/operator/strategies.ts";
import * as system from "#contract/operator/system.ts";
import * as writes from "#contract/operator/writes.ts";

/** Every operation of the operator API, in the order of its document. */
export const OPERATOR_OPERATIONS: readonly OperatorOperation[] = [
  session.signIn,
  oidc.readSignInMethods,
  oidc.beginOidcSignIn,
  oidc.finishOidcSignIn,
  oidc.beginOidcStepUp,
  oidc.finishOidcStepUp,
  session.signOut,
  session.stepUp,
  session.readMe,
  session.listOwnSessions,
  session.endOwnSession,
  session.changePassword,
  session.beginSecondFactor,
  session.confirmSecondFactor,
  session.renewRecoveryCodes,
  operators.listOperators,
  operators.createOperator,
  operators.disableOperator,
  operators.enableOperator,
  operators.changeRole,
  operators.resetPassword,
  operators.resetSecondFactor,
  operators.unlinkOperator,
  runs.listRuns,
  finding.listFailures,
  finding.search,
  runs.readRun,
  events.watchChanges,
  runs.cancelRun,
  runs.purgeRun,
  runs.readRunAgain,
  runs.runAgain,
  runs.readRunGraph,
  nodes.compareRun,
  nodes.readNodeSample,
  nodes.readRunInput,
  runs.listResultRecords,
  runs.downloadResult,
  reviews.listReviews,
  reviews.readReview,
  reviews.listReviewRecords,
  reviews.approveReview,
  reviews.rejectReview,
  credentials.listCredentials,
  credentials.unlockCredential,
  credentials.testLogin,
  credentials.deleteCredential,
  credentials.listCredentialSessions,
  writes.listWrites,
  writes.decideWrite,
  writes.listWriteGroups,
  writes.decideWriteGroup,
  system.readOverview,
  system.readSystem,
  accounts.listAccounts,
  accounts.readAccount,
  accounts.changeAccount,
  audit.listAudit,
  audit.listAuditChains,
  audit.verifyAuditChain,
  audit.exportAudit,
  config.checkConfig,
  config.planConfig,
  config.applyConfig,
  config.readConfigSchema,
  proposals.listProposals,
  proposals.readProposal,
  proposals.confirmProposal,
  proposals.discardProposal,
  blueprints.listBlueprints,
  blueprints.readBlueprint,
  blueprints.listBlueprintVersions,
  blueprints.readBlueprintVersion,
  blueprints.publishBlueprintVersion,
  blueprints.retireBlueprint,
  blueprints.restoreBlueprint,
  blueprints.startRun,
  strategies.listStrategies,
  strategies.readStrategy,
  strategies.listStrategyVersions,
  strategies.readStrategyVersion,
  strategies.publishStrategyVersion,
  strategies.retireStrategy,
  strategies.restoreStrategy,
  keys.listKeys,
  keys.createKey,
  keys.rotateKey,
  keys.revokeKey,
  secrets.listSecrets,
  secrets.setSecret,
  secrets.deleteSecret,
];
