import { constants, type BrotliOptions } from "node:zlib";

/**
 * How results are compressed when they are written or downloaded. Quality 5 keeps up with the disk; Node's default (11) takes a
 * minute for 50 MB. For records that don't repeat, a window of 256 kB compressed as well as Node's default of 4 MB (193 MB to
 * 57.3 and 57.5 MB), with 85 % of the CPU time and 6 MiB of memory instead of 50.
 */
export const RESULT_COMPRESSION: BrotliOptions = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 5,
    [constants.BROTLI_PARAM_LGWIN]: 18,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
};
