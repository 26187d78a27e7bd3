/** What a message can be told. */
export type Signal =
  | "helpful"
  | "not_helpful"
  | "inaccurate"
  | "unsafe"
  | "edit"
  | "regenerate";

/** Every signal that a message can carry. */
export const SIGNALS: readonly Signal[];

/** Longest reason that the server takes, in code points. */
export const MAX_REASON: number;

/** An RFC 9457 problem document as the server answers it. */
export interface Problem {
  status: number;
  title: string;
  error: string;
  detail?: string;
  errors?: { pointer: string; detail: string }[];
  request_id?: string;
}

/** A call that brought no success. */
export class HearbackError extends Error {
  constructor(
    message: string,
    details?: { status?: number; problem?: Problem | null; cause?: unknown },
  );
  /** The HTTP status; 0 if no answer came. */
  readonly status: number;
  /** The problem document, if the answer was one. */
  readonly problem: Problem | null;
  /** Whether the server may have done it all the same. */
  readonly uncertain: boolean;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
}

/** A signal as the server keeps it. */
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

/** Where the server is and who calls. */
export interface ClientOptions {
  /** What stands before `/api/v1/feedback`; the page's own origin if left out. */
  baseUrl?: string;
  /** The bearer token, or a function that is asked for it before each call. */
  token?: string | null | (() => string | null | Promise<string | null>);
  /** After how many milliseconds a call counts as lost; 30,000 if left out. */
  timeout?: number;
}

/** What a signal may be tied to besides its message. */
export interface Anchors {
  chatId?: string | null;
  traceId?: string | null;
}

/** The feedback endpoints. Every method rejects with a {@link HearbackError}. */
export class FeedbackClient {
  constructor(options?: ClientOptions);
  /** Says a signal. A reason that is left out leaves the stored one; `null` erases it. */
  submit(
    feedback: { messageId: string; signal: Signal; reason?: string | null } & Anchors,
  ): Promise<{ id: string; created: boolean }>;
  /** Takes a signal back. That there is none is no error. */
  retract(messageId: string, signal: Signal): Promise<void>;
  /** Every signal that the caller said on a message. */
  list(messageId: string): Promise<FeedbackRow[]>;
}

export interface SignalState {
  active: boolean;
  reason: string | null;
}

/** The server's state of a signal is another one. */
export interface Change extends SignalState {
  signal: Signal;
  /** `user`: what was done on this page is stored. `server`: it was read from there. */
  source: "user" | "server";
}

export interface Observer {
  /** Something that is shown may have changed. */
  update(): void;
  change?(change: Change): void;
  error?(signal: Signal | null, error: HearbackError): void;
}

/** What is to be shown for a message. */
export interface Snapshot {
  signals: Record<Signal, SignalState>;
  /** Whether something is not confirmed by the server yet. */
  pending: boolean;
  reading: boolean;
  /** Why something could not be stored; `null` once dismissed. */
  error: HearbackError | null;
  /** Why the message could not be read; `null` once dismissed. */
  readError: HearbackError | null;
  /** Reasons that could not be stored. */
  failedReasons: Partial<Record<Signal, string | null>>;
}

/** The optimistic state of every message on the page. */
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
  /** Tries again what failed and was not dismissed. */
  retry(messageId: string): void;
  /** Puts the errors of a message away, and keeps the texts that could not be stored. */
  dismiss(messageId: string): void;
  refresh(messageId: string): Promise<void>;
  close(): void;
}

/** Every text that a user sees or hears. */
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
 * A reason for a thumb down that the page adds to "Inaccurate" and "Unsafe". It is stored in front of the text of
 * its signal, as `value: text`, or as `value` without a text.
 */
export interface ReasonOption {
  /** 1 to 64 characters without a colon, unique. */
  value: string;
  /** What the user reads. */
  label: string;
  /** `not_helpful` if left out. */
  signal?: "not_helpful" | "inaccurate" | "unsafe";
}

/**
 * Says where the server is and who calls; until then every element is switched off.
 *
 * Throws a `TypeError` for a reason that breaks the rules of {@link ReasonOption}.
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
  /** Cancelable: `preventDefault()` keeps the signal from being sent. */
  "hearback-regenerate": CustomEvent<{ messageId: string }>;
}

/** `<hearback-feedback message-id chat-id trace-id for regenerate>` */
export class HearbackFeedback extends HTMLElement {
  messageId: string;
  /** The answer as the user is to edit it, say its Markdown. */
  get answerText(): string;
  set answerText(text: string | null);
  /** Texts of this element that differ from those given to {@link configure}. */
  get labels(): Labels;
  set labels(labels: Partial<Labels>);
}

declare global {
  interface HTMLElementTagNameMap {
    "hearback-feedback": HearbackFeedback;
  }
  interface GlobalEventHandlersEventMap extends HearbackFeedbackEventMap {}
}
