/** A hosted form as a page, for the tests of what pages are made of. */
import { load } from "cheerio";
import type { Language } from "#domain/language.ts";
import type { StrategyField } from "#domain/strategy.ts";
import type { Brand } from "#domain/branding.ts";
import type { Shell } from "#hosted/pages/document.ts";
import { renderForm, type FormPage } from "#hosted/pages/form-page.ts";
import { wordingOf } from "#hosted/texts/wordings.ts";
import { strategyField } from "../domain/strategy-field.ts";

export const field = (more: Partial<StrategyField>): StrategyField =>
  strategyField({ key: "username", label: "Username", ...more });
export const FIELDS = [
  field({ autocomplete: "username", placeholder: "amelia" }),
  field({ key: "mail", label: "Email", type: "email" }),
  field({ key: "password", label: "Password", type: "password", secret: true, minLength: 8, maxLength: 64 }),
  field({ key: "token", label: "API token", secret: true }),
  field({
    key: "totp",
    label: "Authenticator secret",
    type: "totp_secret",
    secret: true,
    required: false,
    help: "Only if your login asks for a code.",
  }),
];
export const BRAND: Brand = {
  name: "Acme Inc.",
  accentColor: "#3355ff",
  supportUrl: null,
  logo: null,
  isTest: false,
};
export const shell = (language: Language = "en", more: Partial<Shell> = {}): Shell => ({
  wording: wordingOf(language),
  base: "/connect",
  brand: BRAND,
  isRepeatable: true,
  ...more,
});
export const PAGE: FormPage = {
  brand: BRAND,
  strategyName: "Northwind Supplier Portal",
  description: "Your supplier login at Northwind",
  targetLogo: null,
  targetHosts: ["portal.northwind.example", "login.northwind.example"],
  returnHost: "app.acme.example",
  cancelTo: null,
  fields: FIELDS,
  values: new Map(),
  encoding: "application/x-www-form-urlencoded",
  errors: new Map(),
  signInHost: null,
  notice: null,
  isElsewhere: false,
  csrf: "csrf-value",
  action: "token",
};
export const form = (more: Partial<FormPage> = {}) => load(String(renderForm(shell(), { ...PAGE, ...more })));
