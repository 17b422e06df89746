import type { FastifyInstance } from "fastify";
import type { Services } from "#actions/services.ts";
import * as ofOperators from "#contract/operator/operators.ts";
import * as ofSession from "#contract/operator/session.ts";
import { assert } from "#lib/assert.ts";
import { routeAdder } from "./add-route.ts";
import type { SharedHttp } from "./context.ts";
import * as operators from "./operators.ts";
import * as session from "./session.ts";

/** The operator API: one line a route, each with the operation that names its permission. */
export function registerOperator(app: FastifyInstance, services: Services, http: SharedHttp): void {
  app.register(
    async (api) => {
      // Default deny: a route that comes by another way than the adder's names no permission, and the service does not start.
      api.addHook("onRoute", ({ url, config }) => {
        assert(config !== undefined && "permission" in config, `${url} names no permission`);
      });
      api.addHook("onSend", (_request, reply, _payload, done) => {
        reply.headers({ "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" });
        done();
      });
      api.setErrorHandler((error, _request, reply) => http.renderProblem(services.log, reply, error));
      const { route, openRoute } = routeAdder(api, services, http);

      openRoute(ofSession.signIn, session.postSession);
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
      route(ofOperators.resetPassword, operators.postResetPassword);
      route(ofOperators.resetSecondFactor, operators.postResetSecondFactor);
    },
    { prefix: "/operator/v1" },
  );
}
