/** The feedback acts on a turn: those that count, as reports list them, and those that were only published. @module */

/**
 * `user` is `null` where only the feedback's own user may see whose it is.
 *
 * @typedef {{ kind: string, verdict: import("./words.js").Verdict | null, isMachine: boolean, user: string | null,
 *   ts: string, text: string, confidence: number, isPrivate: boolean, isWithdrawn: boolean, signals: any[] }} Act
 */
/** @typedef {import("./ledger.js").Published} Published */

/** Signals on messages, by the tag that their own user sees. @type {Record<string, string>} */
const SIGNALS = {
  helpful: "Thumb up",
  not_helpful: "Thumb down",
  inaccurate: "Marked as inaccurate",
  unsafe: "Marked as unsafe",
};

/**
 * In the order in which they were given.
 *
 * @param {string} turn
 * @param {any[]} artifacts
 * @param {Published[]} published about the conversation
 * @returns {Act[]}
 */
export function actsOn(turn, artifacts, published) {
  const ours = published.filter(({ event }) => event.turnId === turn);
  const counted = artifacts.map((artifact) => {
    // An artifact's name ends with the first digits of its event's id.
    const digits = artifact.meta.rn.slice(-8);
    const own = ours.find(({ event, isWithdrawn }) => event.feedbackId.startsWith(digits) && !isWithdrawn);
    return { own, act: actOf(artifact, own) };
  });
  const others = ours.filter((each) => !counted.some(({ own }) => own === each)).map(publishedAct);
  return [...counted.map(({ act }) => act), ...others].sort((a, b) => Date.parse(a.ts) - Date.parse(b.ts));
}

/** @param {any} artifact @param {Published | undefined} published @returns {Act} */
function actOf({ reaction, user_id: user, tags }, published) {
  const by = tags.find((/** @type {string} */ tag) => tag.startsWith("by:"))?.slice("by:".length);
  const isMachine = reaction.origin === "machine";
  return {
    kind: isMachine ? "Inferred" : kindOf(by, user, published),
    verdict: reaction.reaction,
    isMachine,
    user: user ?? published?.event.userId ?? null,
    ts: reaction.ts,
    text: reaction.text,
    confidence: reaction.confidence,
    isPrivate: user === null,
    isWithdrawn: false,
    signals: published?.signals ?? [],
  };
}

/** @param {string | undefined} by @param {string | null} user @param {Published | undefined} published */
function kindOf(by, user, published) {
  if (by === undefined && user !== null) {
    return "Reaction";
  }
  if (by !== undefined && by in SIGNALS) {
    return SIGNALS[by];
  }
  return published ? publishedKind(published.event) : "Private feedback";
}

/** Feedback that counts as no verdict, or that no longer counts. @param {Published} published @returns {Act} */
function publishedAct({ event, signals, isWithdrawn }) {
  const isMachine = event.feedbackChannel === "implicit";
  return {
    kind: isMachine ? "Implicit feedback" : publishedKind(event),
    verdict: verdictOf(event),
    isMachine,
    user: event.userId ?? null,
    ts: event.occurredAt,
    text: "",
    confidence: 1,
    isPrivate: false,
    isWithdrawn,
    signals,
  };
}

/** @param {any} event */
export function publishedKind({ outcome, score }) {
  switch (outcome) {
    case "rated":
      return score ? `Rating ${score} of 5` : "Rating";
    case "modified":
      return "Correction";
    case "commented":
      return "Comment";
    case "observed":
      return "Observation";
    case "accepted":
      return "Acceptance";
    default:
      return "Rejection";
  }
}

/** @param {any} event @returns {import("./words.js").Verdict | null} */
export function verdictOf({ outcome, score }) {
  switch (outcome) {
    case "accepted":
      return "ok";
    case "rejected":
      return "not_ok";
    case "rated":
      return score > 3 ? "ok" : score < 3 ? "not_ok" : "neutral";
    default:
      return null;
  }
}
