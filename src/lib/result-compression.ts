import { constants, type BrotliOptions } from "node:zlib";

/**
 * How results are compressed, when they are written or when they are downloaded. Quality 5 keeps up with
 * the disk; Node's default (11) takes a minute for 50 MB. Of records that don't repeat, a window of 256 kB made no more bytes than
 * Node's default of 4 MB (57.3 and 57.5 MB of 193 MB), in 0.85 of the CPU time and with 6 MiB of memory, not 50.
 */
export const RESULT_COMPRESSION: BrotliOptions = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 5,
    [constants.BROTLI_PARAM_LGWIN]: 18,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
};
