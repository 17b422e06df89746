import { html } from "hono/html";
import { type Html, signInDocument } from "./pages.ts";
import type { Session } from "./sessions.ts";
import type { StoredDocument } from "./stored-document.ts";

export function documentsPage(session: Session, documents: readonly StoredDocument[]): Html {
  return signInDocument(
    "Documents",
    html`<h1>Documents</h1>
      <p class="lead">Hand in price lists and certificates.</p>
      <form id="upload" method="post" action="/documents" enctype="multipart/form-data">
        <input type="hidden" name="_csrf" value="${session.csrf}" />
        <label for="title">Title</label>
        <input id="title" name="title" required />
        <label for="document">File</label>
        <input id="document" name="document" type="file" required />
        <button type="submit">Hand in</button>
      </form>
      <ul>
        ${documents.map(({ id, title }) => html`<li><a href="/documents/${id}">${title}</a></li>`)}
      </ul>`,
  );
}

// What a machine reads is in `data`, as on the page of invoices.
export function documentPage(document: StoredDocument): Html {
  return signInDocument(
    document.title,
    html`<article class="document">
        <h1>${document.title}</h1>
        <p class="lead">Received as <span class="number">${document.id}</span></p>
        <p class="file">${document.file_name}</p>
        <p class="size"><data value="${document.bytes}">${document.bytes} bytes</data></p>
        <p><code>${document.sha256}</code></p>
      </article>
      <p class="aside"><a href="/documents">All documents</a></p>`,
  );
}
