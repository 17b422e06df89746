import assert from "node:assert/strict";

/** An answer of the service. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The value at a dot path of the JSON body (`error.details.0.field`); undefined where there is none. */
  at(path: string): unknown;
  /** The same, which must be a string. */
  string(path: string): string;
  /** The whole JSON body, which must be an object. */
  object(): Readonly<Record<string, unknown>>;
}

export interface Sent {
  /** A FormData goes as multipart, a string as it is, all else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A customer's backend. Paths are relative to the base URL. */
export interface Caller {
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  delete(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

/** `key` null sends no Authorization header. */
export function openCaller(baseUrl: string, key: string | null): Caller {
  const call = async (method: string, path: string, sent: Sent): Promise<Answer> =>
    await send(method, `${baseUrl}${path}`, {
      ...sent,
      headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...sent.headers },
    });
  return {
    get: async (path, headers = {}) => await call("GET", path, { headers }),
    post: async (path, body, headers = {}) => await call("POST", path, { body, headers }),
    delete: async (path, headers = {}) => await call("DELETE", path, { headers }),
  };
}

export async function send(method: string, url: string, { body, headers = {} }: Sent = {}): Promise<Answer> {
  const isForm = body instanceof FormData;
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: { ...(body === undefined || isForm ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: isForm || typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return read(response.status, response.headers, await response.text());
}

function read(status: number, headers: Headers, text: string): Answer {
  const at = (path: string): unknown => valueAt(JSON.parse(text), path);
  return {
    status,
    headers,
    text,
    at,
    string: (path) => {
      const value = at(path);
      assert.equal(typeof value, "string", `${path} is not a string in ${text.slice(0, 500)}`);
      return value as string;
    },
    object: () => {
      const value: unknown = JSON.parse(text);
      assert.ok(isObject(value), `the body is no object: ${text.slice(0, 500)}`);
      return value;
    },
  };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at a dot path, or undefined. */
export function valueAt(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split(".")) {
    if (Array.isArray(found)) found = found[Number(name)] as unknown;
    else if (isObject(found)) found = found[name];
    else return undefined;
  }
  return found;
}
