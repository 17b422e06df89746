import { createElement, useCallback, useEffect, useRef, useState, type ReactElement } from "react";
import type { Handle, OpenOptions, Widget } from "./widget-types.ts";

export type * from "./widget-types.ts";

/** Where the widget is loaded from. */
export interface WidgetScript {
  /** `https://<your Latchkey>/embed/v1/latchkey.js` */
  scriptUrl: string;
  /** Pins its bytes (Subresource Integrity); docs/embedded.md has the hash of each version. */
  integrity?: string | undefined;
}

const loading = new Map<string, Promise<Widget>>();

/** Loads the widget, once a page. One that could not be loaded is tried again the next time. */
export async function loadLatchkey({ scriptUrl, integrity }: WidgetScript): Promise<Widget> {
  const known = loading.get(scriptUrl);
  if (known) return await known;
  const widget = new Promise<Widget>((resolve, reject) => {
    const script = document.createElement("script");
    script.src = scriptUrl;
    script.crossOrigin = "anonymous";
    if (integrity !== undefined) script.integrity = integrity;
    script.addEventListener("load", () => {
      const { Latchkey } = window as unknown as { readonly Latchkey?: Widget };
      if (Latchkey) resolve(Latchkey);
      else reject(new Error(`${scriptUrl} is not Latchkey's widget`));
    });
    script.addEventListener("error", () => {
      loading.delete(scriptUrl);
      script.remove();
      reject(new Error(`${scriptUrl} could not be loaded`));
    });
    document.head.append(script);
  });
  loading.set(scriptUrl, widget);
  return await widget;
}

export interface UseLatchkey {
  /** null until the widget is loaded. What it opens goes with the component. */
  open: ((options: OpenOptions) => Handle) | null;
  error: Error | null;
}

/** For a button of yours, which opens the flow as a dialog. */
export function useLatchkey({ scriptUrl, integrity }: WidgetScript): UseLatchkey {
  const [widget, setWidget] = useState<Widget | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const opened = useRef(new Set<Handle>());
  useEffect(() => {
    let isHere = true;
    const handles = opened.current;
    loadLatchkey({ scriptUrl, integrity }).then(
      (loaded) => {
        if (isHere) setWidget(loaded);
      },
      (reason: unknown) => {
        if (isHere) setError(reason instanceof Error ? reason : new Error(String(reason)));
      },
    );
    return () => {
      isHere = false;
      for (const handle of handles) handle.destroy();
      handles.clear();
    };
  }, [scriptUrl, integrity]);
  const open = useCallback(
    (options: OpenOptions): Handle => {
      if (widget === null) throw new Error("Latchkey's widget is not loaded yet");
      const handle = widget.open(options);
      opened.current.add(handle);
      return handle;
    },
    [widget],
  );
  return { open: widget === null ? null : open, error };
}

export interface LatchkeyConnectProps extends WidgetScript, Omit<OpenOptions, "container"> {
  className?: string | undefined;
}

/** The flow in the page, where this stands. Another `clientToken` begins another flow; callbacks may change at any time. */
export function LatchkeyConnect(props: LatchkeyConnectProps): ReactElement {
  const { scriptUrl, integrity, clientToken, embedUrl, locale, theme, title, className } = props;
  const place = useRef<HTMLDivElement>(null);
  const handle = useRef<Handle | null>(null);
  const latest = useRef(props);
  const { open, error } = useLatchkey({ scriptUrl, integrity });
  useEffect(() => {
    latest.current = props;
  });
  useEffect(() => {
    if (open === null) return undefined;
    const opened = open({
      clientToken,
      embedUrl,
      container: place.current,
      locale: latest.current.locale,
      theme: latest.current.theme,
      title,
      onReady: () => latest.current.onReady?.(),
      onEvent: (event) => latest.current.onEvent?.(event),
      onCompleted: (payload) => latest.current.onCompleted?.(payload),
      onExit: (payload) => latest.current.onExit?.(payload),
      onError: (payload) => latest.current.onError?.(payload),
    });
    handle.current = opened;
    return () => opened.destroy();
  }, [open, clientToken, embedUrl, title]);
  useEffect(() => {
    if (locale !== undefined) handle.current?.setLocale(locale);
  }, [locale]);
  useEffect(() => {
    if (theme !== undefined) handle.current?.setTheme(theme);
  }, [theme]);
  useEffect(() => {
    if (error === null) return;
    latest.current.onError?.({ code: "network", message: error.message, recoverable: true });
  }, [error]);
  return createElement("div", { ref: place, className });
}
