//! Measures how often the detector is right.

use std::collections::BTreeMap;

use hearback_detection::FeedbackStatus;
use hearback_domain::feedback::reaction::MIN_CONFIDENCE;

use crate::Scored;

pub(crate) const CLASSES: [FeedbackStatus; 3] = [
    FeedbackStatus::Rejected,
    FeedbackStatus::Accepted,
    FeedbackStatus::Neutral,
];
/// The lower bounds of the buckets of confidence.
const BUCKETS: [f64; 6] = [0.0, 0.55, 0.65, 0.70, 0.80, 0.90];

pub(crate) fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// `part` divided by `whole`; `None` if `whole` is 0.
pub(crate) fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| number(part) / number(whole))
}

fn shown(share: Option<f64>) -> String {
    share.map_or_else(|| "    –".to_owned(), |share| format!("{share:.3}"))
}

fn count(scored: &[&Scored<'_>], of: impl Fn(FeedbackStatus, FeedbackStatus) -> bool) -> usize {
    let is = |scored: &&&Scored<'_>| of(scored.labelled.label, scored.detection.feedback_type);
    scored.iter().filter(is).count()
}

/// Prints precision, recall and F1 of each class, their mean, and the false rejections.
pub(crate) fn print(source: &str, scored: &[&Scored<'_>]) {
    println!("\n{source}: {} messages", scored.len());
    println!("  class     labelled  detected  precision  recall     F1");
    let mut sum = 0.0;
    let mut classes = 0_u8;
    for class in CLASSES {
        let right = count(scored, |label, said| label == class && said == class);
        let labelled = count(scored, |label, _| label == class);
        let detected = count(scored, |_, said| said == class);
        // 2·right / (labelled + detected) is the harmonic mean of precision and recall.
        let f1 = share(2 * right, labelled + detected);
        if labelled > 0 {
            sum += f1.unwrap_or(0.0);
            classes += 1;
        }
        println!(
            "  {:<9}  {labelled:>7}   {detected:>7}      {}   {}  {}",
            class.as_str(),
            shown(share(right, detected)),
            shown(share(right, labelled)),
            shown(f1),
        );
    }
    let rejected = FeedbackStatus::Rejected;
    let kept = count(scored, |label, _| label != rejected);
    let falsely = count(scored, |label, said| label != rejected && said == rejected);
    println!(
        "  macro-F1 over the classes that are labelled {}   false-reject rate {} ({falsely} of {kept})",
        shown((classes > 0).then(|| sum / f64::from(classes))),
        shown(share(falsely, kept)),
    );
}

/// Prints how many of the machine reactions that result from these verdicts are right.
pub(crate) fn print_reactions(scored: &[&Scored<'_>]) {
    let reacts = |scored: &&&Scored<'_>| {
        let detection = &scored.detection;
        detection.feedback_type != FeedbackStatus::Neutral && detection.confidence >= MIN_CONFIDENCE
    };
    let reactions: Vec<_> = scored.iter().filter(reacts).copied().collect();
    let right = count(&reactions, |label, said| label == said);
    let share = shown(share(right, reactions.len()));
    println!(
        "  machine reactions {}, right {right}, share {share}",
        reactions.len()
    );
}

/// Prints the precision of verdicts by confidence and by cue.
pub(crate) fn print_calibration(scored: &[&Scored<'_>]) {
    println!("\nconfidence      n  precision");
    for (at, low) in BUCKETS.iter().enumerate() {
        let high = BUCKETS.get(at + 1).copied().unwrap_or(f64::INFINITY);
        let within = |scored: &&&Scored<'_>| {
            let confidence = scored.detection.confidence;
            (*low..high).contains(&confidence)
        };
        let bucket: Vec<_> = scored.iter().filter(within).copied().collect();
        let right = count(&bucket, |label, said| label == said);
        let precision = shown(share(right, bucket.len()));
        println!("  {low:.2} and up {:>4}      {precision}", bucket.len());
    }
    let mut cues: BTreeMap<(&str, &str), Vec<&Scored<'_>>> = BTreeMap::new();
    for each in scored {
        let cue = each.detection.evidence.first();
        let cue = cue.map_or("(none)", |evidence| evidence.cue.as_str());
        let verdict = each.detection.feedback_type.as_str();
        cues.entry((verdict, cue)).or_default().push(each);
    }
    println!("\nverdict   cue             n  precision");
    for ((verdict, cue), scored) in &cues {
        let right = count(scored, |label, said| label == said);
        let precision = shown(share(right, scored.len()));
        println!(
            "{verdict:<9} {cue:<13} {:>3}      {precision}",
            scored.len()
        );
    }
}

/// Prints the errors with the highest confidence, up to `shown_errors` of them.
pub(crate) fn print_worst(scored: &[&Scored<'_>], shown_errors: usize) {
    let mut wrong: Vec<_> = scored
        .iter()
        .filter(|scored| scored.labelled.label != scored.detection.feedback_type)
        .collect();
    let false_rejection =
        |scored: &Scored<'_>| scored.detection.feedback_type == FeedbackStatus::Rejected;
    wrong.sort_by(|one, other| {
        let order = |scored: &Scored<'_>| scored.detection.confidence;
        let confidence = order(other).total_cmp(&order(one));
        let kind = false_rejection(other).cmp(&false_rejection(one));
        kind.then(confidence)
    });
    println!(
        "\nthe worst of {} errors, false rejections first",
        wrong.len()
    );
    for scored in wrong.iter().take(shown_errors) {
        let cue = scored.detection.evidence.first();
        println!(
            "  {} {}, is {} ({:.2}, {}): {}",
            scored.labelled.id,
            scored.labelled.label.as_str(),
            scored.detection.feedback_type.as_str(),
            scored.detection.confidence,
            cue.map_or("–", |evidence| evidence.cue.as_str()),
            scored.labelled.message.replace('\n', " "),
        );
    }
}
