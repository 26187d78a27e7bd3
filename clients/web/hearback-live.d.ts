import type { ClientOptions, HearbackError, Problem } from "./hearback-feedback.js";

export { HearbackError };
export type { Problem };

/** An event as the feed lists it. The other members depend on `eventType`. */
export interface FeedEvent {
  /** The same in every read; also a position in the feed. */
  eventId: string;
  eventType: "feedback.processed" | "feedback.retracted" | "learning.signal.generated";
  feedbackId: string;
  publishedAt: string;
  [member: string]: unknown;
}

/** Which events are received. An event must match all members; one that is left out or empty matches everything. */
export interface FeedFilter {
  channels?: readonly ("explicit" | "implicit" | "correction")[];
  types?: readonly string[];
  eventTypes?: readonly FeedEvent["eventType"][];
  projectId?: string;
  labels?: Readonly<Record<string, string>>;
}

/** `waiting`: before another attempt. `closed`: by {@link Feed.close}, or because the server rejected it for good. */
export type FeedState = "connecting" | "open" | "waiting" | "closed";

export interface FeedOptions extends ClientOptions {
  /** Receives each event once. */
  onEvent: (event: FeedEvent) => void;
  /** Learns the state of the connection, and with `waiting` and `closed` why, unless the page closed it. */
  onState?: (state: FeedState, error: HearbackError | null) => void;
  /**
   * An `eventId` or a `lastEventId`: everything later is received first. By default, new events and those of the last 15
   * seconds.
   */
  after?: string | null;
  filter?: FeedFilter;
}

export interface Feed {
  /** Ends the connection. No event is received after this. */
  close(): void;
  /** Where another page can continue, as its `after`; `null` before the first connection. */
  readonly lastEventId: string | null;
}

/** Follows the feed, across lost connections, until it is closed. */
export function followFeed(options: FeedOptions): Feed;
