use super::*;

/// A sequence of random numbers (splitmix64).
struct Random(u64);

impl Random {
    /// A number from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [.., a, b, c, d] = (mixed ^ (mixed >> 31)).to_le_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
    }

    /// The rate of a user who judges one to four answers, and accepts one with this probability.
    fn user(&mut self, probability: f64) -> f64 {
        let (mut acts, mut accepted) = (0.0, 0.0);
        while acts < 1.0 || (acts < 4.0 && self.next() < 0.5) {
            acts += 1.0;
            accepted += f64::from(u8::from(self.next() < probability));
        }
        accepted / acts
    }
}

const DAYS: u32 = 60;
const ASKED: f64 = 0.05;

/// The first day on which somebody who looks every day is told a difference, and the verdict.
fn experiment(
    random: &mut Random,
    users: u32,
    (a, b): (f64, f64),
) -> Option<(u32, ComparisonVerdict)> {
    let mut samples = [Sample::default(), Sample::default()];
    (1..=DAYS).find_map(|day| {
        for (sample, probability) in samples.iter_mut().zip([a, b]) {
            for _ in 0..users {
                sample.add(random.user(probability));
            }
        }
        let [a, b] = &samples;
        let verdict = Comparison::of(a, b, ASKED).verdict;
        let is_told = matches!(
            verdict,
            ComparisonVerdict::Better | ComparisonVerdict::Worse
        );
        is_told.then_some((day, verdict))
    })
}

#[test]
fn of_experiments_without_a_difference_at_most_one_in_twenty_is_ever_told_one() {
    let mut random = Random(41);
    for (users, probability) in [(5, 0.5), (5, 0.9), (40, 0.7), (40, 0.98)] {
        let experiments = 500;
        let told = (0..experiments)
            .filter(|_| experiment(&mut random, users, (probability, probability)).is_some());
        let told = told.count();
        println!("{users} users a day, {probability}: {told} of {experiments}");
        assert!(told <= experiments / 20, "{users}, {probability}: {told}");
    }
}

#[test]
fn a_difference_is_found_and_a_larger_one_earlier() {
    let mut random = Random(42);
    let mut before = DAYS;
    for difference in [0.05, 0.1, 0.2] {
        let mut days: Vec<_> = (0..100)
            .map(|_| {
                let found = experiment(&mut random, 100, (0.8, 0.8 - difference));
                let (day, verdict) = found.expect("a difference");
                assert_eq!(verdict, ComparisonVerdict::Worse);
                day
            })
            .collect();
        days.sort_unstable();
        let median = days[days.len() / 2];
        println!(
            "{difference}: {median} days of 100 users of each, at most {}",
            days[99]
        );
        assert!(median < before, "{difference}");
        before = median;
    }
}

fn sample(users: u32, accepting: u32) -> Sample {
    let mut sample = Sample::default();
    for user in 0..users {
        sample.add(f64::from(u8::from(user < accepting)));
    }
    sample
}

#[test]
fn verdicts_follow_the_interval() {
    let verdict = |a, b| Comparison::of(&a, &b, ASKED).verdict;
    assert_eq!(
        verdict(sample(1000, 800), sample(1000, 900)),
        ComparisonVerdict::Better
    );
    assert_eq!(
        verdict(sample(1000, 900), sample(1000, 800)),
        ComparisonVerdict::Worse
    );
    let equal = verdict(sample(10_000, 8_000), sample(10_000, 8_050));
    assert_eq!(equal, ComparisonVerdict::NoDifferenceFound);
    for (a, b) in [
        (sample(0, 0), sample(1000, 800)),
        (sample(0, 0), sample(0, 0)),
        // Enough by the formula, and too few to know the variance.
        (sample(19, 0), sample(1000, 1000)),
        (sample(300, 240), sample(300, 250)),
    ] {
        assert_eq!(verdict(a, b), ComparisonVerdict::CannotTellYet);
    }
}

#[test]
fn with_as_many_more_users_as_it_says_it_can_be_told() {
    for (accepting, expected) in [
        (164, ComparisonVerdict::NoDifferenceFound),
        (168, ComparisonVerdict::Better),
        (150, ComparisonVerdict::Worse),
    ] {
        let compare = |more: u32| {
            // The new users are as those so far.
            let grown = |users: u32, accepting: u32| {
                let all = users + more;
                sample(all, accepting * all / users)
            };
            Comparison::of(&grown(300, 240), &grown(200, accepting), ASKED)
        };
        let more = u32::try_from(compare(0).more_users.unwrap()).unwrap();
        assert_eq!(compare(more + 10).verdict, expected, "{more}");
        let less = compare(more * 9 / 10).verdict;
        assert_eq!(less, ComparisonVerdict::CannotTellYet, "{more}");
    }
    let none = Comparison::of(&sample(0, 0), &sample(0, 0), ASKED);
    assert!(none.more_users.unwrap() >= 20);
    assert_eq!(none.difference, None);
}
