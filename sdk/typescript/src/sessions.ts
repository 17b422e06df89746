import type {
  CreatedEmbeddedCredentialSession,
  CredentialSession,
  CredentialSessionRequest,
  EmbeddedCredentialSession,
  EmbeddedCredentialSessionRequest,
} from "./api-types.ts";
import type { Connection, RequestOptions, WriteOptions } from "./connection.ts";
import { poll, type WaitOptions } from "./wait.ts";

/** Other statuses are states in progress (`spec/interface.md`, "Credential session `status`"). */
const isTerminal = ({ status }: { readonly status: string }): boolean =>
  status === "completed" || status === "expired";

export class CredentialSessions {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Creates a form for one end user. Send the user to `hosted_url`. */
  async create(request: CredentialSessionRequest, options?: WriteOptions): Promise<CredentialSession> {
    return await this.#connection.json({ operation: "createCredentialSession", body: request, options });
  }

  async read(id: string, options?: RequestOptions): Promise<CredentialSession> {
    return await this.#connection.json({ operation: "readCredentialSession", parameters: { id }, options });
  }

  /** Polls until the session is `completed` or `expired`. Throws WaitTimeoutError. */
  async waitFor(id: string, options: WaitOptions<CredentialSession> = {}): Promise<CredentialSession> {
    return await poll(async () => await this.read(id, { signal: options.signal }), isTerminal, options);
  }
}

export class EmbeddedCredentialSessions {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Creates a flow for a frame in your page. Pass `client_token` and `embed_url` to the widget. */
  async create(
    request: EmbeddedCredentialSessionRequest,
    options?: WriteOptions,
  ): Promise<CreatedEmbeddedCredentialSession> {
    return await this.#connection.json({
      operation: "createEmbeddedCredentialSession",
      body: request,
      options,
    });
  }

  async read(id: string, options?: RequestOptions): Promise<EmbeddedCredentialSession> {
    return await this.#connection.json({
      operation: "readEmbeddedCredentialSession",
      parameters: { id },
      options,
    });
  }

  /** Polls until the session is `completed` or `expired`. Throws WaitTimeoutError. */
  async waitFor(
    id: string,
    options: WaitOptions<EmbeddedCredentialSession> = {},
  ): Promise<EmbeddedCredentialSession> {
    return await poll(async () => await this.read(id, { signal: options.signal }), isTerminal, options);
  }
}

export class Credentials {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Destroys the stored secrets. Throws NotFoundError if the credential does not exist. */
  async delete(id: string, options?: WriteOptions): Promise<void> {
    await this.#connection.send(
      { operation: "deleteCredential", parameters: { credentialId: id }, options },
      async (response) => await response.text(),
    );
  }
}
