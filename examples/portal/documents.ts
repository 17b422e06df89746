import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { documentPage, documentsPage } from "./document-pages.ts";
import { messagePage } from "./pages.ts";
import { csrfMatches } from "./sessions.ts";
import type { SignedIn } from "./signed-in.ts";
import type { StoredDocument } from "./stored-document.ts";

const UPLOAD_BYTES_MAX = 2_000_000;
const DOCUMENTS_MAX = 100;
const MULTIPART = "multipart/form-data";

/** The upload form at `/documents`, as portals have it: a page with a CSRF token, and a multipart POST that leads to a new page. */
export function addDocumentRoutes(app: FastifyInstance, signedIn: SignedIn): readonly StoredDocument[] {
  const documents: StoredDocument[] = [];
  app.addContentTypeParser(
    MULTIPART,
    { parseAs: "buffer", bodyLimit: UPLOAD_BYTES_MAX },
    async (request: FastifyRequest, body: Buffer) =>
      await readForm(request.headers["content-type"] ?? "", body),
  );
  app.get("/documents", async (request, reply) => {
    const user = signedIn(request);
    if (!user) return reply.redirect("/login");
    return await page(reply, documentsPage(user.session, documents));
  });
  app.post("/documents", { bodyLimit: UPLOAD_BYTES_MAX }, async (request, reply) => {
    const user = signedIn(request);
    if (!user) return reply.redirect("/login");
    const form = request.body instanceof FormData ? request.body : new FormData();
    if (!csrfMatches(user.session, textOf(form, "_csrf")))
      return await page(reply.code(403), messagePage("Form expired", "Reload the page and try again."));
    const file = form.get("document");
    const title = textOf(form, "title").trim();
    if (!(file instanceof File) || file.size === 0 || title === "")
      return await page(reply.code(422), messagePage("Not complete", "A title and a file are needed."));
    if (documents.length >= DOCUMENTS_MAX)
      return await page(reply.code(507), messagePage("Full", "No more documents can be kept."));
    const bytes = Buffer.from(await file.arrayBuffer());
    const document: StoredDocument = {
      id: `DOC-${String(documents.length + 1).padStart(4, "0")}`,
      title,
      file_name: file.name,
      media_type: file.type,
      bytes: bytes.length,
      sha256: createHash("sha256").update(bytes).digest("hex"),
    };
    documents.push(document);
    return reply.redirect(`/documents/${document.id}`, 303);
  });
  app.get<{ Params: { id: string } }>("/documents/:id", async (request, reply) => {
    const user = signedIn(request);
    if (!user) return reply.redirect("/login");
    const document = documents.find(({ id }) => id === request.params.id);
    if (!document) return await page(reply.code(404), messagePage("Not found", "There is no such document."));
    return await page(reply, documentPage(document));
  });
  return documents;
}

async function readForm(contentType: string, body: Buffer): Promise<FormData> {
  try {
    return await new Response(new Uint8Array(body), {
      headers: { "content-type": contentType },
    }).formData();
  } catch {
    throw Object.assign(new Error("The form can't be read"), { statusCode: 400 });
  }
}

function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}

async function page(reply: FastifyReply, content: ReturnType<typeof messagePage>): Promise<FastifyReply> {
  return reply.type("text/html; charset=utf-8").send(String(await content));
}
