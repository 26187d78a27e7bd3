/** A kind of feedback on a message. */
export type Signal =
  | "helpful"
  | "not_helpful"
  | "inaccurate"
  | "unsafe"
  | "edit"
  | "regenerate";

/** All signals. */
export const SIGNALS: readonly Signal[];

/** Maximum length of a reason, in code points. */
export const MAX_REASON: number;

/** A problem document of the server (RFC 9457). */
export interface Problem {
  status: number;
  title: string;
  error: string;
  detail?: string;
  errors?: { pointer: string; detail: string }[];
  request_id?: string;
}

/** A failed call. */
export class HearbackError extends Error {
  constructor(
    message: string,
    details?: { status?: number; problem?: Problem | null; cause?: unknown },
  );
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  /** The problem document, if the response was one. */
  readonly problem: Problem | null;
  /** Whether the call may have succeeded on the server. */
  readonly uncertain: boolean;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
}

/** A signal as the server stores it. */
export interface FeedbackRow {
  id: string;
  message_id: string;
  chat_id: string | null;
  trace_id: string | null;
  signal: Signal;
  reason: string | null;
  workspace_id: string;
  feedback_id: string;
  created_at: string;
  updated_at: string;
}

/** Address and credentials of the server. */
export interface ClientOptions {
  /** The URL before `/api/v1/feedback` and `/v1/feedback`; by default the page's origin. */
  baseUrl?: string;
  /** The bearer token, or a function that returns it, called before each request. */
  token?: string | null | (() => string | null | Promise<string | null>);
  /** Timeout of a call in milliseconds; by default 30,000. */
  timeout?: number;
}

/** What a signal can refer to in addition to its message. */
export interface Anchors {
  chatId?: string | null;
  traceId?: string | null;
}

/** The feedback endpoints. Every method rejects with a {@link HearbackError}. */
export class FeedbackClient {
  constructor(options?: ClientOptions);
  /**
   * Submits a signal. Without `reason`, the stored reason is kept; `null` deletes it. With `exclusive`, the contrary
   * signals are withdrawn once this one is stored.
   */
  submit(
    feedback: { messageId: string; signal: Signal; reason?: string | null; exclusive?: boolean } & Anchors,
  ): Promise<{ id: string; created: boolean }>;
  /** Withdraws a signal. It is no error if there is none. */
  retract(messageId: string, signal: Signal): Promise<void>;
  /** The caller's signals on a message. */
  list(messageId: string): Promise<FeedbackRow[]>;
  /** A ticket, which opens one connection to the live feed. */
  ticket(): Promise<{ ticket: string; url: string; expiresAt: string }>;
}

export interface SignalState {
  active: boolean;
  reason: string | null;
}

/** The server's state of a signal has changed. */
export interface Change extends SignalState {
  signal: Signal;
  /** `user`: an action on this page was stored. `server`: the change was read from the server. */
  source: "user" | "server";
}

export interface Observer {
  /** The snapshot may have changed. */
  update(): void;
  change?(change: Change): void;
  error?(signal: Signal | null, error: HearbackError): void;
}

/** What to show for a message. */
export interface Snapshot {
  signals: Record<Signal, SignalState>;
  /** Whether the server has not confirmed everything yet. */
  pending: boolean;
  reading: boolean;
  /** Why a change was not stored; `null` once dismissed. */
  error: HearbackError | null;
  /** Why reading the message failed; `null` once dismissed. */
  readError: HearbackError | null;
  /** Reasons that were not stored. */
  failedReasons: Partial<Record<Signal, string | null>>;
}

/** The optimistic state of all messages on the page. */
export class FeedbackStore {
  constructor(client: FeedbackClient);
  subscribe(messageId: string, observer: Observer): () => void;
  snapshot(messageId: string): Snapshot;
  set(
    messageId: string,
    signal: Signal,
    active: boolean,
    options?: { reason?: string | null } & Anchors,
  ): void;
  /** Retries failed changes that were not dismissed. */
  retry(messageId: string): void;
  /** Dismisses the errors of a message, and keeps the texts that were not stored. */
  dismiss(messageId: string): void;
  refresh(messageId: string): Promise<void>;
  close(): void;
}

/** All texts of the user interface. */
export interface Labels {
  group: string;
  helpful: string;
  notHelpful: string;
  reasons: string;
  inaccurate: string;
  unsafe: string;
  details: string;
  reasonText: string;
  /** With `{reason}`. */
  reasonTextFor: string;
  sendReason: string;
  edit: string;
  editor: string;
  editorHint: string;
  save: string;
  cancel: string;
  edited: string;
  removeEdit: string;
  regenerate: string;
  /** With `{count}`. */
  charactersLeft: string;
  /** With `{count}`. */
  charactersOver: string;
  sent: string;
  undo: string;
  saved: string;
  withdrawn: string;
  retry: string;
  dismiss: string;
  errorOffline: string;
  errorUnavailable: string;
  errorUnauthorized: string;
  errorUnknownMessage: string;
  errorTooLong: string;
  errorRefused: string;
  errorRead: string;
  errorSignedOut: string;
}

export const DEFAULT_LABELS: Readonly<Labels>;

/**
 * A reason for a thumb down that the page adds to "Inaccurate" and "Unsafe". It is stored in the reason of its signal,
 * as `value: text`, or as `value` without a text.
 */
export interface ReasonOption {
  /** 1 to 64 characters, without a colon, unique. */
  value: string;
  /** The text that is shown. */
  label: string;
  /** By default `not_helpful`. */
  signal?: "not_helpful" | "inaccurate" | "unsafe";
}

/**
 * Configures all elements of the page, which are disabled until then.
 *
 * Throws a `TypeError` for a reason that violates the rules of {@link ReasonOption}.
 */
export function configure(
  options?: ClientOptions & { labels?: Partial<Labels>; reasons?: readonly ReasonOption[] },
): FeedbackStore;

export interface HearbackFeedbackEventMap {
  "hearback-change": CustomEvent<Change & { messageId: string }>;
  "hearback-error": CustomEvent<{
    messageId: string;
    signal: Signal | null;
    error: HearbackError;
  }>;
  /** Cancelable: after `preventDefault()`, the signal is not sent. */
  "hearback-regenerate": CustomEvent<{ messageId: string }>;
}

/** `<hearback-feedback message-id chat-id trace-id for regenerate>` */
export class HearbackFeedback extends HTMLElement {
  messageId: string;
  /** The text of the answer to edit, such as its Markdown. */
  get answerText(): string;
  set answerText(text: string | null);
  /** Texts that override those of {@link configure} for this element. */
  get labels(): Labels;
  set labels(labels: Partial<Labels>);
}

declare global {
  interface HTMLElementTagNameMap {
    "hearback-feedback": HearbackFeedback;
  }
  interface GlobalEventHandlersEventMap extends HearbackFeedbackEventMap {}
}
