import { timingSafeEqual, createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { consentPage } from "./consent-page.ts";
import { isRegistered, OAUTH_CLIENTS, type OAuthClient } from "./oauth-clients.ts";
import type { OAuthTokens } from "./oauth-tokens.ts";
import { messagePage } from "./pages.ts";
import { formField } from "./parameters.ts";
import { enterStage, sessionOf } from "./session-cookie.ts";
import { csrfMatches, type Sessions } from "./sessions.ts";
import type { SignedIn } from "./signed-in.ts";

const SCOPE = "transactions";

/** The portal's authorization server: the code flow with PKCE (RFC 6749, RFC 7636), for its own API alone. */
export function addOAuthRoutes(
  app: FastifyInstance,
  sessions: Sessions,
  signedIn: SignedIn,
  tokens: OAuthTokens,
): void {
  app.get("/oauth/authorize", async (request, reply) => {
    const asked = readRequest(request);
    if (asked.kind === "unknown") return await refuse(reply);
    if (asked.kind === "error") return reply.redirect(asked.back, 303);
    const user = signedIn(request);
    if (!user) {
      enterStage(reply, sessions, sessionOf(request, sessions), {
        stage: "anonymous",
        returnTo: request.url,
      });
      return reply.redirect("/login");
    }
    // The form's answer leads away: the browser follows only where the page allows it.
    const origin = new URL(asked.redirectUri).origin;
    const policy = String(reply.getHeader("content-security-policy"));
    reply.header(
      "content-security-policy",
      policy.replace("form-action 'self'", `form-action 'self' ${origin}`),
    );
    return await page(reply, consentPage(user.session, user.account, asked.client, request.url));
  });

  app.post("/oauth/authorize", async (request, reply) => {
    const asked = readRequest(request);
    const user = signedIn(request);
    if (asked.kind !== "good" || !user || !csrfMatches(user.session, formField(request, "_csrf")))
      return await refuse(reply);
    if (formField(request, "decision") !== "allow")
      return reply.redirect(answer(asked.redirectUri, asked.state, { error: "access_denied" }), 303);
    const grant = { clientId: asked.client.id, username: user.account.username, scope: SCOPE };
    const code = tokens.giveCode(grant, asked.redirectUri, asked.challenge);
    return reply.redirect(answer(asked.redirectUri, asked.state, { code }), 303);
  });

  app.post("/oauth/token", async (request, reply) => {
    const client = clientOf(request);
    if (!client)
      return reply
        .code(401)
        .header("www-authenticate", 'Basic realm="Northwind"')
        .send({ error: "invalid_client" });
    const grantType = formField(request, "grant_type");
    if (grantType !== "authorization_code" && grantType !== "refresh_token")
      return reply.code(400).send({ error: "unsupported_grant_type" });
    const given =
      grantType === "refresh_token"
        ? tokens.refresh(client.id, formField(request, "refresh_token"))
        : tokens.exchangeCode(
            client.id,
            formField(request, "code"),
            formField(request, "redirect_uri"),
            formField(request, "code_verifier"),
          );
    return given ?? reply.code(400).send({ error: "invalid_grant" });
  });
}

type Asked =
  /** Nobody that we know: the browser is sent nowhere (RFC 6749, 4.1.2.1). */
  | { readonly kind: "unknown" }
  | { readonly kind: "error"; readonly back: string }
  | {
      readonly kind: "good";
      readonly client: OAuthClient;
      readonly redirectUri: string;
      readonly state: string;
      readonly challenge: string;
    };

/** The authorization request, which stands in the address of the page and of its form. */
function readRequest(request: FastifyRequest): Asked {
  const parameters = new URL(request.url, "http://portal.invalid").searchParams;
  const one = (name: string): string => {
    const all = parameters.getAll(name);
    return all.length === 1 ? (all[0] ?? "") : "";
  };
  const client = OAUTH_CLIENTS.find(({ id }) => id === one("client_id"));
  const redirectUri = one("redirect_uri");
  if (!client || !isRegistered(client, redirectUri)) return { kind: "unknown" };
  const state = one("state");
  const error = (code: string): Asked => ({
    kind: "error",
    back: answer(redirectUri, state, { error: code }),
  });
  if (one("response_type") !== "code") return error("unsupported_response_type");
  if (one("scope") !== SCOPE) return error("invalid_scope");
  const challenge = one("code_challenge");
  if (one("code_challenge_method") !== "S256" || !/^[\w-]{43}$/.test(challenge))
    return error("invalid_request");
  return { kind: "good", client, redirectUri, state, challenge };
}

function answer(redirectUri: string, state: string, values: Readonly<Record<string, string>>): string {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  if (state !== "") url.searchParams.set("state", state);
  return url.href;
}

/** RFC 6749, 2.3.1: HTTP Basic, both parts form-encoded. */
function clientOf(request: FastifyRequest): OAuthClient | undefined {
  const [, encoded = ""] = /^Basic (\S+)$/i.exec(request.headers.authorization ?? "") ?? [];
  const [id = "", secret = ""] = Buffer.from(encoded, "base64").toString("utf8").split(":", 2).map(decoded);
  const client = OAUTH_CLIENTS.find((each) => each.id === id);
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return client && timingSafeEqual(digest(client.secret), digest(secret)) ? client : undefined;
}

const decoded = (text: string): string => new URLSearchParams(`v=${text}`).get("v") ?? "";

const refuse = (reply: FastifyReply): Promise<FastifyReply> =>
  page(
    reply.code(400),
    messagePage(
      "This link does not work",
      "The application that sent you here is not known, or asked wrongly.",
    ),
  );

async function page(reply: FastifyReply, content: ReturnType<typeof messagePage>): Promise<FastifyReply> {
  return reply.type("text/html; charset=utf-8").send(String(await content));
}
