import { constants, type BrotliOptions } from "node:zlib";

/**
 * How results are compressed, when they are written or when they are downloaded. Design, page 7, 1.10: quality 5 keeps up with
 * the disk; Node's default (11) takes a minute for 50 MB.
 */
export const RESULT_COMPRESSION: BrotliOptions = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 5,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
};
