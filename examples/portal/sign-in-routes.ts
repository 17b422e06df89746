import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { codePage, loginPage, messagePage } from "./pages.ts";
import { formField } from "./parameters.ts";
import { enterStage, forgetSession, sessionOf } from "./session-cookie.ts";
import { csrfMatches, type Session, type Sessions } from "./sessions.ts";
import type { SignIn } from "./sign-in.ts";

const WRONG = "Wrong username or password";
const LOCKED = "Account locked after too many wrong tries. Please call your Northwind contact.";

export function addSignInRoutes(app: FastifyInstance, sessions: Sessions, signIn: SignIn): void {
  app.get("/login", async (request, reply) => {
    const session = sessionOf(request, sessions);
    if (session?.stage === "signed_in") return reply.redirect("/invoices");
    // A visitor who comes back here from the code page starts again, signed out.
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
    const { returnTo } = session;
    if (outcome === "code_needed") {
      enterStage(reply, sessions, session, { stage: "code", username, returnTo });
      return reply.redirect("/login/otp");
    }
    enterStage(reply, sessions, session, { stage: "signed_in", username });
    return reply.redirect(returnTo ?? "/invoices");
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
    return reply.redirect(session.returnTo ?? "/invoices");
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

const refuseForm = (reply: FastifyReply): Promise<FastifyReply> =>
  page(
    reply.code(403),
    messagePage("Form expired", "This form is no longer valid. Go back, reload the page and try again."),
  );

async function page(reply: FastifyReply, content: ReturnType<typeof messagePage>): Promise<FastifyReply> {
  return reply.type("text/html; charset=utf-8").send(String(await content));
}
