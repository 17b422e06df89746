/** A process of its own in the network of a browser: opens a listener on loopback, and hands it to the worker. See `own-network.ts`. */
import { createServer } from "node:net";

const server = createServer();
server.listen(0, "127.0.0.1", () => process.send?.({}, server));
// The worker has it, or is gone.
process.once("disconnect", () => server.close());
