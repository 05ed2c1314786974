//! Checks what time counts as waited for a processor.

use crate::history::{moment, waiting_for_a_processor};
use jiff::SignedDuration;

#[test]
fn a_wait_that_is_counted_when_it_ends_fills_the_time_before_it() {
    let rules = waiting_for_a_processor(&[(0, 250, 0), (250, 500, 100), (500, 750, 600)]);
    for (from, to, waited) in [
        (0, 250, 200),
        (250, 500, 250),
        (500, 750, 250),
        (0, 750, 700),
        (750, 900, 0),
    ] {
        let within = rules.processor_waits.within(moment(from), moment(to));
        assert_eq!(within.as_millis(), waited, "{from} to {to}");
        let elapsed = rules.processor_waits.elapsed(moment(from), moment(to));
        assert_eq!(
            elapsed.as_millis(),
            i128::from(to - from) - waited,
            "{from} to {to}"
        );
    }
}

#[test]
fn a_span_begins_earlier_by_what_was_waited_for_in_it() {
    let rules = waiting_for_a_processor(&[(0, 1000, 0), (1000, 2000, 900), (2000, 3000, 0)]);
    for (to, span, from) in [
        (3000, 500, 2500),
        (3000, 1000, 2000),
        (3000, 1100, 1000),
        (3000, 1200, 0),
        (9000, 1000, 8000),
    ] {
        let begins = rules
            .processor_waits
            .before(moment(to), SignedDuration::from_millis(span));
        assert_eq!(begins, moment(from), "{span} before {to}");
    }
}

#[test]
fn no_more_is_waited_for_than_was_measured() {
    let rules = waiting_for_a_processor(&[(0, 250, 900), (250, 500, 600)]);
    let all = rules.processor_waits.within(moment(0), moment(500));
    assert_eq!(all.as_millis(), 500);
}
