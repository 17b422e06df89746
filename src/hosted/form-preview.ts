import type { Services } from "#actions/services.ts";
import type { Brand } from "#domain/branding.ts";
import type { Language } from "#domain/language.ts";
import type { Strategy } from "#domain/strategy.ts";
import { targetHosts } from "./form-of.ts";
import { signInHostOf } from "./oauth-routes.ts";
import { renderForm } from "./pages/form-page.ts";
import { formShape } from "./read-form.ts";
import { basePath } from "./send-page.ts";
import { wordingOf } from "./texts/wordings.ts";

/** The page that a session of this strategy would show. It belongs to no session, so that nothing can be sent with it. */
export function renderFormPreview(
  services: Services,
  {
    strategy,
    brand,
    language,
    scheme,
  }: {
    readonly strategy: Strategy;
    readonly brand: Brand;
    readonly language: Language;
    readonly scheme: "light" | "dark";
  },
): string {
  const shell = {
    wording: wordingOf(language),
    base: basePath(services),
    brand,
    isRepeatable: false,
    scheme,
  };
  const page = renderForm(shell, {
    brand,
    strategyName: strategy.name,
    description: strategy.description,
    // Of a document that is not published, the service serves nothing.
    targetLogo: strategy.logoUrl,
    targetHosts: targetHosts(strategy),
    returnHost: null,
    cancelTo: null,
    fields: strategy.fields,
    values: new Map(),
    encoding: formShape(strategy.fields).encoding,
    errors: new Map(),
    signInHost: signInHostOf(strategy),
    notice: null,
    isElsewhere: false,
    csrf: "",
    action: "",
  });
  return page.toString();
}
