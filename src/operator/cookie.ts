import type { FastifyReply, FastifyRequest } from "fastify";
import type { Services } from "#actions/services.ts";

/** Design, page 6, 5.10. The prefix promises TLS, so without TLS there is none. */
function cookieOf(services: Pick<Services, "publicUrl">): { readonly name: string; readonly secure: string } {
  return services.publicUrl().startsWith("https:")
    ? { name: "__Host-latchkey_operator", secure: "; Secure" }
    : { name: "latchkey_operator", secure: "" };
}

/** No page can read it, and no other site's request carries it. It goes with the browser's session. */
export function setSessionCookie(reply: FastifyReply, services: Services, token: string): void {
  const { name, secure } = cookieOf(services);
  reply.header("Set-Cookie", `${name}=${token}; Path=/; HttpOnly; SameSite=Strict${secure}`);
}

export function clearSessionCookie(reply: FastifyReply, services: Services): void {
  const { name, secure } = cookieOf(services);
  reply.header("Set-Cookie", `${name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0${secure}`);
}

/** Empty when there is none; also when there are two: somebody else may have set one. */
export function readSessionToken(request: FastifyRequest, services: Services): string {
  const { name } = cookieOf(services);
  const values = (request.headers.cookie ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? (values[0] ?? "") : "";
}
