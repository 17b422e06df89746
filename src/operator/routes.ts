import type { FastifyInstance } from "fastify";
import type { Services } from "#actions/services.ts";
import * as ofAccounts from "#contract/operator/accounts.ts";
import * as ofAudit from "#contract/operator/audit.ts";
import * as ofBlueprints from "#contract/operator/blueprints.ts";
import * as ofConfig from "#contract/operator/config.ts";
import * as ofCredentials from "#contract/operator/credentials.ts";
import * as ofDevices from "#contract/operator/devices.ts";
import * as ofEvents from "#contract/operator/events.ts";
import * as ofKeys from "#contract/operator/keys.ts";
import * as ofOidc from "#contract/operator/oidc.ts";
import * as ofOperators from "#contract/operator/operators.ts";
import * as ofProposals from "#contract/operator/proposals.ts";
import * as ofReviews from "#contract/operator/reviews.ts";
import * as ofLive from "#contract/operator/live.ts";
import * as ofNodes from "#contract/operator/nodes.ts";
import * as ofRuns from "#contract/operator/runs.ts";
import * as ofSchedules from "#contract/operator/schedules.ts";
import * as ofFinding from "#contract/operator/finding.ts";
import * as ofSecrets from "#contract/operator/secrets.ts";
import * as ofSession from "#contract/operator/session.ts";
import * as ofStrategies from "#contract/operator/strategies.ts";
import * as ofSystem from "#contract/operator/system.ts";
import * as ofTokens from "#contract/operator/tokens.ts";
import * as ofWebhooks from "#contract/operator/webhooks.ts";
import * as ofWrites from "#contract/operator/writes.ts";
import { assert } from "#lib/assert.ts";
import * as accounts from "./accounts.ts";
import { routeAdder } from "./add-route.ts";
import * as audit from "./audit.ts";
import * as config from "./config.ts";
import type { SharedHttp } from "./context.ts";
import * as credentials from "./credentials.ts";
import * as devices from "./devices.ts";
import * as events from "./events.ts";
import * as keys from "./keys.ts";
import * as oidc from "./oidc.ts";
import * as operators from "./operators.ts";
import * as proposals from "./proposals.ts";
import * as reviews from "./reviews.ts";
import * as runs from "./runs.ts";
import * as schedules from "./schedules.ts";
import * as secrets from "./secrets.ts";
import * as session from "./session.ts";
import * as system from "./system.ts";
import * as tokens from "./tokens.ts";
import * as webhooks from "./webhooks.ts";
import * as writes from "./writes.ts";

/** The operator API: one line a route, each with the operation that names its permission. */
export function registerOperator(app: FastifyInstance, services: Services, http: SharedHttp): void {
  app.register(
    async (api) => {
      // Default deny: a route that was not added by the adder has no permission, and the service does not start.
      api.addHook("onRoute", ({ url, config }) => {
        assert(config !== undefined && "permission" in config, `${url} names no permission`);
      });
      api.addHook("onSend", (_request, reply, _payload, done) => {
        reply.headers({ "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" });
        done();
      });
      api.setErrorHandler((error, _request, reply) => http.renderProblem(services.log, reply, error));
      const add = routeAdder(api, services, http);
      addPeople(add);
      addWork(add);
      addInstallation(add);
      addConfiguration(add, http);
    },
    { prefix: "/operator/v1" },
  );
}

type Adder = ReturnType<typeof routeAdder>;

/** Operators, their sign-in, and the tokens of their programs. */
function addPeople({ route, openRoute }: Adder): void {
  openRoute(ofSession.signIn, session.postSession);
  openRoute(ofOidc.readSignInMethods, oidc.getMethods);
  openRoute(ofOidc.beginOidcSignIn, oidc.postBegin);
  openRoute(ofOidc.finishOidcSignIn, oidc.postFinish);
  route(ofOidc.beginOidcStepUp, oidc.postBeginStepUp);
  route(ofOidc.finishOidcStepUp, oidc.postFinishStepUp);
  openRoute(ofDevices.beginDeviceSignIn, devices.postDeviceSignIn);
  openRoute(ofDevices.pollDeviceSignIn, devices.postPoll);
  route(ofDevices.readDeviceSignIn, devices.getDeviceSignIn);
  route(ofDevices.approveDeviceSignIn, devices.postApprove);
  route(ofDevices.denyDeviceSignIn, devices.postDeny);
  route(ofSession.signOut, session.deleteSession);
  route(ofSession.stepUp, session.postStepUp);
  route(ofSession.readMe, session.getMe);
  route(ofSession.listOwnSessions, session.getOwnSessions);
  route(ofSession.endOwnSession, session.deleteOwnSession);
  route(ofSession.changePassword, session.postPassword);
  route(ofSession.beginSecondFactor, session.postSecondFactor);
  route(ofSession.confirmSecondFactor, session.postConfirmation);
  route(ofSession.renewRecoveryCodes, session.postRecoveryCodes);

  route(ofOperators.listOperators, operators.getOperators);
  route(ofOperators.createOperator, operators.postOperator);
  route(ofOperators.disableOperator, operators.postDisable);
  route(ofOperators.enableOperator, operators.postEnable);
  route(ofOperators.changeRole, operators.postRole);
  route(ofOperators.changeOperatorAccounts, operators.postAccounts);
  route(ofOperators.resetPassword, operators.postResetPassword);
  route(ofOperators.resetSecondFactor, operators.postResetSecondFactor);
  route(ofOperators.unlinkOperator, operators.postUnlink);

  route(ofTokens.listTokens, tokens.getTokens);
  route(ofTokens.endOwnToken, tokens.deleteOwnToken);
  route(ofTokens.createToken, tokens.postToken);
  route(ofTokens.revokeToken, tokens.postRevokeToken);
}

/** Runs, reviews, schedules and uncertain writes. */
function addWork({ route }: Adder): void {
  route(ofRuns.listRuns, runs.getRuns);
  route(ofFinding.listFailures, runs.getFailures);
  route(ofFinding.search, runs.getSearch);
  route(ofRuns.readRun, runs.getRun);
  route(ofEvents.watchChanges, events.getEvents);
  route(ofRuns.cancelRun, runs.postCancel);
  route(ofRuns.purgeRun, runs.postPurge);
  route(ofRuns.readRunAgain, runs.getAgain);
  route(ofRuns.runAgain, runs.postAgain);
  route(ofRuns.readRunGraph, runs.getGraph);
  route(ofNodes.compareRun, runs.getComparison);
  route(ofNodes.readNodeSample, runs.getSample);
  route(ofNodes.readRunInput, runs.getInput);
  route(ofRuns.listResultRecords, runs.getResultRecords);
  route(ofRuns.downloadResult, runs.getResultFile);
  route(ofRuns.readPicture, runs.getPicture);
  route(ofLive.watchRunPage, runs.postLive);
  route(ofLive.readLivePicture, runs.getLivePicture);

  route(ofReviews.listReviews, reviews.getReviews);
  route(ofReviews.readReview, reviews.getReview);
  route(ofReviews.listReviewRecords, reviews.getRecords);
  route(ofReviews.approveReview, reviews.postApprove);
  route(ofReviews.rejectReview, reviews.postReject);
  route(ofReviews.noteAtReview, reviews.postPresence);

  route(ofSchedules.listSchedules, schedules.getSchedules);
  route(ofSchedules.readSchedule, schedules.getSchedule);
  route(ofSchedules.pauseSchedule, schedules.postPause);
  route(ofSchedules.resumeSchedule, schedules.postResume);
  route(ofSchedules.runSchedule, schedules.postRun);

  route(ofWrites.listWrites, writes.getWrites);
  route(ofWrites.decideWrite, writes.postDecision);
  route(ofWrites.listWriteGroups, writes.getWriteGroups);
  route(ofWrites.decideWriteGroup, writes.postGroupDecision);
}

/** The content and the state of the installation. */
function addInstallation({ route }: Adder): void {
  route(ofCredentials.listCredentials, credentials.getCredentials);
  route(ofCredentials.readCredential, credentials.getCredential);
  route(ofCredentials.unlockCredential, credentials.postUnlock);
  route(ofCredentials.testLogin, credentials.postTestLogin);
  route(ofCredentials.requestCredential, credentials.postRequest);
  route(ofCredentials.deleteCredential, credentials.deleteCredential);
  route(ofCredentials.listCredentialSessions, credentials.getCredentialSessions);
  route(ofCredentials.readCredentialSession, credentials.getCredentialSession);
  route(ofCredentials.linkCredentialSession, credentials.postSessionLink);
  route(ofCredentials.revokeCredentialSession, credentials.postSessionRevocation);

  route(ofKeys.listKeys, keys.getKeys);
  route(ofKeys.createKey, keys.postKey);
  route(ofKeys.rotateKey, keys.postRotate);
  route(ofKeys.revokeKey, keys.postRevoke);

  route(ofSecrets.listSecrets, secrets.getSecrets);
  route(ofSecrets.setSecret, secrets.postSecret);
  route(ofSecrets.deleteSecret, secrets.deleteSecret);

  route(ofWebhooks.listWebhooks, webhooks.getWebhooks);
  route(ofWebhooks.createWebhook, webhooks.postWebhook);
  route(ofWebhooks.updateWebhook, webhooks.postUpdate);
  route(ofWebhooks.rotateWebhook, webhooks.postRotate);
  route(ofWebhooks.disableWebhook, webhooks.postDisable);
  route(ofWebhooks.enableWebhook, webhooks.postEnable);
  route(ofWebhooks.deleteWebhook, webhooks.deleteWebhook);
  route(ofWebhooks.listWebhookDeliveries, webhooks.getDeliveries);
  route(ofWebhooks.readWebhookDelivery, webhooks.getDelivery);
  route(ofWebhooks.resendWebhook, webhooks.postResend);
  route(ofWebhooks.resendFailedWebhooks, webhooks.postResendFailed);
  route(ofWebhooks.pingWebhook, webhooks.postPing);
  route(ofWebhooks.triggerWebhookEvent, webhooks.postTrigger);

  route(ofSystem.readOverview, system.getOverview);
  route(ofSystem.readSystem, system.getSystem);

  route(ofAccounts.listAccounts, accounts.getAccounts);
  route(ofAccounts.readAccount, accounts.getAccount);
  route(ofAccounts.changeAccount, accounts.postAccount);

  route(ofAudit.listAudit, audit.getAudit);
  route(ofAudit.listAuditChains, audit.getChains);
  route(ofAudit.verifyAuditChain, audit.getVerified);
  route(ofAudit.exportAudit, audit.getExport);
}

/** Documents. */
function addConfiguration({ route }: Adder, http: SharedHttp): void {
  route(ofConfig.checkConfig, config.postCheck);
  route(ofConfig.planConfig, config.postPlan);
  route(ofConfig.applyConfig, config.postApply);
  route(ofConfig.exportConfig, config.getExport);
  route(ofConfig.readConfigSchema, config.getSchema);

  route(ofProposals.listProposals, proposals.getProposals);
  route(ofProposals.readProposal, proposals.getProposal);
  route(ofProposals.confirmProposal, proposals.postConfirm);
  route(ofProposals.discardProposal, proposals.postDiscard);

  route(ofBlueprints.listBlueprints, config.getBlueprints);
  route(ofBlueprints.readBlueprint, config.getBlueprint);
  route(ofBlueprints.readBlueprintHealth, config.getBlueprintHealth);
  route(ofBlueprints.listBlueprintVersions, config.blueprintVersions.list);
  route(ofBlueprints.readBlueprintVersion, config.blueprintVersions.read);
  route(ofBlueprints.publishBlueprintVersion, config.blueprintVersions.publish);
  route(ofBlueprints.retireBlueprint, config.blueprintVersions.retire);
  route(ofBlueprints.restoreBlueprint, config.blueprintVersions.restore);
  route(ofBlueprints.startRun, config.postRun);

  route(ofStrategies.listStrategies, config.getStrategies);
  route(ofStrategies.readStrategy, config.getStrategy);
  route(ofStrategies.previewForm, config.postPreview(http.renderFormPreview));
  route(ofStrategies.listStrategyVersions, config.strategyVersions.list);
  route(ofStrategies.readStrategyVersion, config.strategyVersions.read);
  route(ofStrategies.publishStrategyVersion, config.strategyVersions.publish);
  route(ofStrategies.retireStrategy, config.strategyVersions.retire);
  route(ofStrategies.restoreStrategy, config.strategyVersions.restore);
}
