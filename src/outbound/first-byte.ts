import type { Dispatcher } from "undici";

/**
 * Calls `ask` when a request has its connection (looked up, dialled, through its TLS handshake) and nothing of it has left. What it throws
 * ends the request before its first byte.
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
