//! Alternating rounds, quantiles and ratios; knows nothing of what is measured.

use std::time::{Duration, Instant};

/// What went wrong, for a person to read.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
/// The result of anything here.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Between two batches: what one contender left to the kernel must not be paid by the next.
const SETTLE: Duration = Duration::from_millis(20);

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Batches of each contender, in turn; one more is thrown away.
    pub(crate) rounds: usize,
    /// Samples in a batch.
    pub(crate) batch: usize,
}

/// One side of a comparison: makes a batch of samples, in microseconds.
pub(crate) struct Contender<'a> {
    name: String,
    batch: Box<dyn FnMut(usize) -> Outcome<Vec<f64>> + 'a>,
}

impl<'a> Contender<'a> {
    /// `act` is called once for each sample, `pause` apart, and says how long it took.
    pub(crate) fn new(
        name: impl Into<String>,
        pause: Duration,
        mut act: impl FnMut() -> Outcome<Duration> + 'a,
    ) -> Self {
        Self::in_batches(name, move |count| {
            let sample = |_| {
                std::thread::sleep(pause);
                act().map(|took| took.as_secs_f64() * 1e6)
            };
            (0..count).map(sample).collect()
        })
    }

    /// `batch` makes as many samples as it is asked for.
    pub(crate) fn in_batches(
        name: impl Into<String>,
        batch: impl FnMut(usize) -> Outcome<Vec<f64>> + 'a,
    ) -> Self {
        Self { name: name.into(), batch: Box::new(batch) }
    }
}

/// Times one call.
pub(crate) fn timed<T>(act: impl FnOnce() -> Outcome<T>) -> Outcome<(Duration, T)> {
    let start = Instant::now();
    let value = act()?;
    Ok((start.elapsed(), value))
}

/// Times one call whose value is not needed; it is dropped after the clock is read.
pub(crate) fn took<T>(act: impl FnOnce() -> Outcome<T>) -> Outcome<Duration> {
    timed(act).map(|(took, _value)| took)
}

/// What one contender did: its samples, round by round.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    rounds: Vec<Vec<f64>>,
}

/// Lets the contenders take turns, A B A B, after one round of warming up.
pub(crate) fn alternate(effort: Effort, contenders: &mut [Contender<'_>]) -> Outcome<Vec<Series>> {
    let empty = |contender: &Contender<'_>| Series { name: contender.name.clone(), rounds: vec![] };
    let mut series: Vec<Series> = contenders.iter().map(empty).collect();
    for round in 0..=effort.rounds {
        for (contender, series) in contenders.iter_mut().zip(&mut series) {
            std::thread::sleep(SETTLE);
            let samples = (contender.batch)(effort.batch)
                .map_err(|failure| format!("{}: {failure}", contender.name))?;
            if round > 0 {
                series.rounds.push(samples);
            }
        }
    }
    Ok(series)
}

/// The middle of a distribution, and its width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) p10: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
}

impl Spread {
    /// Of any values; all zero where there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1);
        let at = |tenths| values.get(last * tenths / 10).copied().unwrap_or_default();
        Self { p10: at(1), p50: at(5), p90: at(9) }
    }
}

impl Series {
    pub(crate) fn spread(&self) -> Spread {
        Spread::of(self.rounds.iter().flatten().copied())
    }

    /// Of all samples, the one that so many of a hundred do not exceed.
    pub(crate) fn percentile(&self, hundredths: usize) -> f64 {
        let mut samples: Vec<f64> = self.rounds.iter().flatten().copied().collect();
        samples.sort_by(f64::total_cmp);
        let last = samples.len().saturating_sub(1);
        samples.get(last * hundredths / 100).copied().unwrap_or_default()
    }

    pub(crate) fn count(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }

    /// One value for each round, from its median and that of the same round of `other`: what drifts
    /// in the machine drifts in both.
    pub(crate) fn pairwise(&self, other: &Self, value: impl Fn(f64, f64) -> f64) -> Spread {
        let median = |round: &Vec<f64>| Spread::of(round.iter().copied()).p50;
        let pairs = self.rounds.iter().map(median).zip(other.rounds.iter().map(median));
        Spread::of(pairs.map(|(own, other)| value(own, other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let rows: [(&[f64], [f64; 3]); 4] = [
            (&[], [0.0; 3]),
            (&[7.0], [7.0; 3]),
            (&[3.0, 1.0, 2.0], [1.0, 2.0, 2.0]),
            (&[10.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [1.0, 5.0, 9.0]),
        ];
        for (values, [p10, p50, p90]) in rows {
            assert_eq!(Spread::of(values.iter().copied()), Spread { p10, p50, p90 }, "{values:?}");
        }
    }

    #[test]
    fn a_percentile_is_of_all_samples() {
        let round = |from: u32| (from..from + 50).map(f64::from).collect();
        let series = Series { name: String::new(), rounds: vec![round(51), round(1)] };
        let found = [0, 50, 99, 100].map(|hundredths| series.percentile(hundredths));
        assert_eq!(found, [1.0, 50.0, 99.0, 100.0]);
    }

    #[test]
    fn contenders_take_turns_and_the_first_round_is_thrown_away() {
        let turns = std::cell::RefCell::new(String::new());
        let contender = |name: &'static str, value: f64| {
            let turns = &turns;
            Contender::in_batches(name, move |count| {
                turns.borrow_mut().push_str(name);
                Ok(vec![value; count])
            })
        };
        let mut contenders = [contender("a", 6.0), contender("b", 2.0)];
        let effort = Effort { rounds: 2, batch: 3 };
        let series = alternate(effort, &mut contenders).unwrap();
        drop(contenders);
        assert_eq!(turns.into_inner(), "ababab");
        assert_eq!(series.iter().map(Series::count).collect::<Vec<_>>(), [6, 6]);
        let ratio = series[0].pairwise(&series[1], |a, b| a / b);
        assert_eq!(ratio, Spread { p10: 3.0, p50: 3.0, p90: 3.0 });
    }
}
