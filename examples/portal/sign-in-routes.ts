import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { codePage, loginPage, messagePage } from "./pages.ts";
import { enterStage, forgetSession, sessionOf } from "./session-cookie.ts";
import { csrfMatches, type Session, type Sessions } from "./sessions.ts";
import type { SignIn } from "./sign-in.ts";

const WRONG = "Wrong username or password";
const LOCKED = "Account locked after too many wrong tries. Please call your Northwind contact.";

export function addSignInRoutes(app: FastifyInstance, sessions: Sessions, signIn: SignIn): void {
  app.get("/login", async (request, reply) => {
    const session = sessionOf(request, sessions);
    if (session?.stage === "signed_in") return reply.redirect("/invoices");
    // Whoever comes back here from the code page starts again, as nobody.
    const visitor =
      session?.stage === "anonymous" ? session : enterStage(reply, sessions, session, { stage: "anonymous" });
    return page(reply, loginPage(visitor, null, ""));
  });

  app.post("/login", async (request, reply) => {
    const session = sessionOf(request, sessions);
    if (!session || session.stage !== "anonymous" || !hasCsrf(request, session)) return refuseForm(reply);
    const username = formField(request, "username");
    const outcome = signIn.checkPassword(username, formField(request, "password"));
    if (outcome === "locked") return page(reply.code(423), loginPage(session, LOCKED, username));
    if (outcome === "wrong") return page(reply, loginPage(session, WRONG, username));
    enterStage(reply, sessions, session, { stage: outcome === "signed_in" ? "signed_in" : "code", username });
    return reply.redirect(outcome === "signed_in" ? "/invoices" : "/login/otp");
  });

  app.get("/login/otp", async (request, reply) => {
    const session = sessionOf(request, sessions);
    if (session?.stage === "code") return page(reply, codePage(session, null));
    return reply.redirect(session?.stage === "signed_in" ? "/invoices" : "/login");
  });

  app.post("/login/otp", async (request, reply) => {
    const session = sessionOf(request, sessions);
    if (session?.stage !== "code" || !hasCsrf(request, session)) return refuseForm(reply);
    const outcome = signIn.checkCode(session.username, formField(request, "code"));
    if (outcome === "locked") return page(reply.code(423), codePage(session, LOCKED));
    if (outcome === "wrong") return page(reply, codePage(session, "Wrong code"));
    if (outcome === "used")
      return page(reply, codePage(session, "Code already used. Please wait for the next one."));
    enterStage(reply, sessions, session, { stage: "signed_in", username: session.username });
    return reply.redirect("/invoices");
  });

  app.post("/logout", async (request, reply) => {
    const session = sessionOf(request, sessions);
    if (!session) return reply.redirect("/login");
    if (!hasCsrf(request, session)) return refuseForm(reply);
    forgetSession(reply, sessions, session);
    return reply.redirect("/login");
  });
}

const hasCsrf = (request: FastifyRequest, session: Session): boolean =>
  csrfMatches(session, formField(request, "_csrf"));

/** A field of an urlencoded body; empty when it is missing or came twice. */
function formField(request: FastifyRequest, name: string): string {
  const body: unknown = request.body;
  const value: unknown = typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
  return typeof value === "string" ? value : "";
}

const refuseForm = (reply: FastifyReply): Promise<FastifyReply> =>
  page(
    reply.code(403),
    messagePage("Form expired", "This form is no longer valid. Go back, reload the page and try again."),
  );

async function page(reply: FastifyReply, content: ReturnType<typeof messagePage>): Promise<FastifyReply> {
  return reply.type("text/html; charset=utf-8").send(String(await content));
}
