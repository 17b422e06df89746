import type { Dispatcher } from "undici";

/**
 * Calls `ask` when the request's connection is established (name resolved, TLS handshake completed) but no byte of the request
 * was sent. If it throws, the request ends before its first byte.
 */
export const askBeforeFirstByte =
  (ask: () => void): Dispatcher.DispatcherComposeInterceptor =>
  (dispatch) =>
  (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        ask();
        handler.onRequestStart?.(controller, context);
      },
      onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
      onResponseStart: (...given) => handler.onResponseStart?.(...given),
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onResponseError: (...given) => handler.onResponseError?.(...given),
      onResponseStarted: () => handler.onResponseStarted?.(),
      onBodySent: (...given) => handler.onBodySent?.(...given),
      onRequestSent: () => handler.onRequestSent?.(),
    });
