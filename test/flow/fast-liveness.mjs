// Loaded with `--import`: a worker is considered dead, and a database gone, sooner than in the product, which knows nothing of it.
import { limits } from "../../src/domain/limits.ts";

for (const name of ["heartbeatMs", "heartbeatStaleMs", "selfFenceMs"]) limits[name] /= 10;
limits.databaseGoneMs /= 60;
