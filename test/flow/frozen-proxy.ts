import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A way to a database that can turn into a black hole: nothing gets through, and nobody is told. */
export interface FrozenProxy {
  readonly connectionString: string;
  /** From now on every byte is swallowed, and new connections get no answer. */
  swallow(): void;
  /** So many new connections get through; later ones get no answer. */
  letThrough(connections: number): void;
  /** New connections get through again. Those of before stay dead, as with a firewall that has forgotten them. */
  heal(): void;
  /** All connections are cut, and new ones lead to another server. */
  switchTo(connectionString: string): void;
  close(): Promise<void>;
}

export async function openFrozenProxy(connectionString: string): Promise<FrozenProxy> {
  let to = addressOf(connectionString);
  const open = new Set<Socket>();
  const dead = new WeakSet<Socket>();
  let isSwallowing = false;
  let left = Infinity;
  const keep = (socket: Socket): void => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  };
  const server = createServer((near) => {
    keep(near);
    near.on("error", () => {});
    // What is swallowed is read all the same: to the sender it looks sent.
    near.on("data", () => {});
    if (isSwallowing || left === 0) return;
    left -= 1;
    const far = to.host.startsWith("/")
      ? connect(`${to.host}/.s.PGSQL.${to.port}`)
      : connect(to.port, to.host);
    keep(far);
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (bytes: Buffer) => {
        if (!dead.has(near)) other.write(bytes);
      });
      from.on("error", () => {});
      from.on("close", () => {
        if (!dead.has(near)) other.destroy();
      });
    }
    far.on("connect", () => dead.has(near) && far.destroy());
    near.on("close", () => dead.has(near) && far.destroy());
    links.set(near, far);
  });
  const links = new Map<Socket, Socket>();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = connectionString.replace(
    `@${new URL(connectionString).host}`,
    `@127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
  return {
    connectionString: own,
    swallow: () => {
      isSwallowing = true;
      for (const near of links.keys()) dead.add(near);
    },
    letThrough: (connections) => {
      left = connections;
    },
    heal: () => {
      isSwallowing = false;
      left = Infinity;
    },
    switchTo: (other) => {
      to = addressOf(other);
      for (const socket of open) socket.destroy();
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

function addressOf(connectionString: string): { readonly host: string; readonly port: number } {
  const url = new URL(connectionString);
  return { host: decodeURIComponent(url.hostname), port: Number(url.port || 5432) };
}
