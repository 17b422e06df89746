import { readJsonObject } from "#api/read-body.ts";
import { renderProblem } from "#api/render-problem.ts";
import { refuseApiAddress, registerApi } from "#api/routes.ts";
import type { Services } from "#actions/services.ts";
import { renderFormPreview } from "#hosted/form-preview.ts";
import { isHostedPath, registerHosted, sendUnknown } from "#hosted/routes.ts";
import { registerDashboard } from "#operator/dashboard.ts";
import { registerOperator } from "#operator/routes.ts";

type App = Parameters<typeof registerApi>[0];

/** Registers all routes of the api role. */
export function registerRoutes(app: App, services: Services): void {
  registerApi(app, services);
  registerHosted(app, services);
  registerOperator(app, services, { renderProblem, readJsonObject, renderFormPreview });
  registerDashboard(app, services);
}

/** Answers a request that the framework can't route in the form of the pages or the API that its path belongs to. */
export async function refuseAddress(...refused: Parameters<typeof refuseApiAddress>): Promise<unknown> {
  const [services, request, reply] = refused;
  return isHostedPath(request.url)
    ? await sendUnknown(services, request, reply)
    : await refuseApiAddress(...refused);
}
