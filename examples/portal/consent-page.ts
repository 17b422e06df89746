import { html } from "hono/html";
import type { PortalAccount } from "./accounts.ts";
import type { OAuthClient } from "./oauth-clients.ts";
import { type Html, signInDocument } from "./pages.ts";
import type { Session } from "./sessions.ts";

/** `action` is the address of the page: the request that is agreed to stands in it. */
export function consentPage(
  session: Session,
  account: PortalAccount,
  client: OAuthClient,
  action: string,
): Html {
  return signInDocument(
    `Allow ${client.name}?`,
    html`<h1>Allow ${client.name} to read your transactions?</h1>
      <p class="lead">
        You are signed in as ${account.displayName}. It can read your bank transactions, and nothing else.
      </p>
      <form id="consent" method="post" action="${action}">
        <input type="hidden" name="_csrf" value="${session.csrf}" />
        <button type="submit" name="decision" value="allow">Allow</button>
        <button type="submit" name="decision" value="deny" class="quiet">Don't allow</button>
      </form>`,
  );
}
