import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A way to a database that can be cut: a new address for the same server. */
export interface DatabaseProxy {
  readonly connectionString: string;
  /** From now on nothing gets through, and what is open ends. */
  close(): Promise<void>;
}

export async function openDatabaseProxy(connectionString: string): Promise<DatabaseProxy> {
  const url = new URL(connectionString);
  const host = decodeURIComponent(url.hostname);
  const port = Number(url.port || 5432);
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket);
      socket.pipe(other);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        open.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = new URL(
    connectionString.replace(`@${url.host}`, `@127.0.0.1:${(server.address() as AddressInfo).port}`),
  );
  return {
    connectionString: own.href,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
