// The widget's options and events: docs/embedded.md. sdk/react/ has a generated copy.

export type Theme = "light" | "dark" | "auto";
export type View = "picker" | "form" | "oauth" | "otp" | "verifying" | "success" | "error";

/** An open set: treat an unknown code as `internal`. */
export type ErrorCode =
  | "origin_not_allowed"
  | "session_expired"
  | "session_used"
  | "popup_blocked"
  | "oauth_denied"
  | "oauth_failed"
  | "login_refused"
  | "too_many_attempts"
  | "network"
  | "internal";

/** Confirm it on your server: only the answer of the session's GET counts. */
export interface Completed {
  session_id: string;
  credential_id: string;
  /** By the Blueprint's slots. */
  credential_ids: Record<string, string>;
  blueprint_key: string;
}

export interface Exited {
  at_view: View | null;
  reason: "cancelled" | "closed" | "escape" | "error";
}

export interface Failure {
  code: ErrorCode;
  /** For developers, in English. */
  message: string;
  recoverable: boolean;
}

/** Every event with its payload. None contains entered values. */
export interface Events {
  ready: Record<string, never>;
  opened: { view: View };
  resize: { height: number };
  view_changed: { view: View };
  blueprint_selected: { blueprint_key: string };
  submitted: { attempt: number };
  field_error: { fields: string[] };
  challenge_required: { kind: string };
  oauth_opened: Record<string, never>;
  oauth_closed: Record<string, never>;
  popup_blocked: Record<string, never>;
  /** Sent once, as the last event. */
  completed: Completed;
  error: Failure;
  expired: Record<string, never>;
  exited: Exited;
}

export type EventType = keyof Events;
export type AnyEvent = { [Type in EventType]: { type: Type; payload: Events[Type] } }[EventType];

export interface OpenOptions {
  /** `client_token` and `embed_url` of the session that your server has created. */
  clientToken: string;
  embedUrl: string;
  /** The element that contains the frame; default: a dialog above the page. */
  container?: Element | null | undefined;
  /** A language tag. Default: the session's language, or else the browser's. */
  locale?: string | undefined;
  /** Default, and `auto`: the system's. */
  theme?: Theme | undefined;
  /** The accessible name of the frame. */
  title?: string | undefined;
  onReady?: (() => void) | undefined;
  onEvent?: ((event: AnyEvent) => void) | undefined;
  onCompleted?: ((payload: Completed) => void) | undefined;
  onExit?: ((payload: Exited) => void) | undefined;
  onError?: ((payload: Failure) => void) | undefined;
}

export interface Handle {
  /** Asks the frame to end; the `exited` event follows. */
  close(): void;
  /** Removes the frame at once, without an event. */
  destroy(): void;
  /** Returns a function that removes the listener. */
  on<Type extends EventType>(type: Type, listener: (payload: Events[Type]) => void): () => void;
  setLocale(locale: string): void;
  setTheme(theme: Theme): void;
}

export interface Widget {
  open(options: OpenOptions): Handle;
}
