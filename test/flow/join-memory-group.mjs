// Loaded with `--import`: the process, and what it starts, has the memory limit of a group, as in a container.
import { appendFileSync } from "node:fs";

appendFileSync(`${process.env.LATCHKEY_TEST_MEMORY_GROUP}/cgroup.procs`, String(process.pid));
