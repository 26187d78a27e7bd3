//! Files that are imported in several pieces, and one line that is longer than a piece.

use uuid::Uuid;

use super::*;

#[tokio::test]
async fn packed_files_are_imported_in_pieces() {
    let (lines, expected) = generated(2, 200);
    let (first, second) = lines.split_at(120);
    let [first, second] = [first, second].map(|lines| lines.join("\n") + "\n");
    // Several gzip members or zstd frames are one file.
    let members = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
    let frame = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    let frames = [frame(&first), frame(&second)].concat();
    for packed in [members, frames] {
        let import = Import::of(packed).await;
        let report = import.work().await;
        assert_eq!(counts_of(&report), expected);
        assert_eq!(report.counts.lines, 200);
        assert_eq!(report.damage, None);
        let events = usize::try_from(expected.queued).unwrap();
        assert_eq!(import.events().await.len(), events);
        let left = import.objects().await;
        assert!(
            left.iter().all(|key| key.starts_with("imports/")),
            "{left:?}"
        );
    }
}

/// Files of several pieces, with few but long lines.
#[tokio::test]
async fn lines_keep_their_numbers_across_pieces() {
    let events = generated(9, 40).0;
    // The noise packs to half its size. A denser file would have fewer rejects.
    let noise: String = (0..6_250)
        .map(|_| Uuid::new_v4().simple().to_string())
        .collect();
    let long = format!("no event {noise}");
    // More than three pieces, each cut within a line.
    let line = |number: usize| {
        if number.is_multiple_of(5) {
            &events[number / 5]
        } else {
            &long
        }
    };
    let lines: Vec<&str> = (0..70).map(|number| line(number).as_str()).collect();
    let text = lines.join("\n").into_bytes();
    assert!(text.len() > 11_000_000);
    for packed in [false, true] {
        let import = Import::of(if packed { gzip(&text) } else { text.clone() }).await;
        // A second notification, so that each piece has two messages.
        import.notify().await;
        let importer = import.importer(import.engine.store.clone());
        let soon = || Some(Utc::now() + Duration::from_millis(40));
        let report = import.work_until(&importer, soon).await;
        assert_eq!(report.counts.lines, 70);
        assert_eq!(report.counts.events(), 70);
        let numbers: Vec<_> = import.rejects().await;
        let numbers = numbers
            .iter()
            .filter(|reject| reject["error"] == "not_json");
        let numbers: Vec<_> = numbers
            .map(|reject| reject["line_number"].as_u64().unwrap())
            .collect();
        let expected: Vec<_> = (0..70)
            .filter(|number| number % 5 > 0)
            .map(|number| number + 1)
            .collect();
        assert_eq!(numbers, expected);
        assert_eq!(report.first_errors.len(), 10);
        assert!(
            report
                .first_errors
                .is_sorted_by_key(|error| error.line_number)
        );
        let left = import.objects().await;
        assert!(
            left.iter().all(|key| key.starts_with("imports/")),
            "{left:?}"
        );
    }
}

/// A line without an end is read once, not once for each piece.
#[tokio::test]
async fn a_file_without_line_ends_is_one_line_that_is_too_long() {
    let import = Import::of(vec![b'['; 13_000_000]).await;
    let report = import.work().await;
    assert_eq!((report.counts.lines, report.counts.rejected), (1, 1));
    assert_eq!(report.first_errors[0].rejection.error, "line_too_long");
}
