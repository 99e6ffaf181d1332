//! The regions of a demo: the flags `--regions`, `--rtt` and `--bandwidth`, checked together.

use std::collections::BTreeSet;
use std::time::Duration;

use super::distance::Plan;
use super::distance::pairs::Pairs;
use crate::cli::DemoArgs;
use crate::config::{Locality, RoundTrip};

/// Fewer nodes have no second replica to read from.
const REGIONS_MIN: usize = 3;
/// The most nodes of a demo.
const REGIONS_MAX: usize = 9;

/// Flags that do not fit together; printed as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegionsError {
    /// Too few or too many regions.
    #[error("--regions names {0} region(s), not {REGIONS_MIN} to {REGIONS_MAX}")]
    Number(usize),
    /// A name that cannot be a locality.
    #[error("--regions: {0:?} is no name: letters, digits, '-', '_' and '.'")]
    Name(String),
    /// Two regions have one name.
    #[error("--regions names {0} twice")]
    Twice(String),
    /// `--rtt A-B=TIME` names something else than two regions.
    #[error("--rtt: {0:?} is no pair of the regions {1}")]
    UnknownPair(String, String),
    /// The round trip of a pair is given twice.
    #[error("--rtt gives the round trip {0} twice")]
    PairTwice(String),
    /// The round trip of a pair is not given.
    #[error("--rtt does not say how far {0} is from {1}; give a time for all other pairs too")]
    Missing(String, String),
}

/// The regions of a demo, one node in each.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    pub(super) names: Vec<String>,
    /// The distance between them, if there is any.
    pub(super) distance: Option<Plan>,
}

impl Regions {
    /// The regions that the flags name; `None` for a demo without.
    pub(super) fn from_args(args: &DemoArgs) -> Result<Option<Regions>, RegionsError> {
        let Some(names) = args.regions.clone() else { return Ok(None) };
        if !(REGIONS_MIN..=REGIONS_MAX).contains(&names.len()) {
            return Err(RegionsError::Number(names.len()));
        }
        let mut seen = BTreeSet::new();
        for name in &names {
            if format!("region={name}").parse::<Locality>().is_err() {
                return Err(RegionsError::Name(name.clone()));
            }
            if !seen.insert(name) {
                return Err(RegionsError::Twice(name.clone()));
            }
        }
        let distance = match args.rtt.is_empty() {
            true => None,
            false => {
                let round_trips = round_trips(&names, &args.rtt)?;
                Some(Plan { names: names.clone(), round_trips, bandwidth: args.bandwidth })
            }
        };
        Ok(Some(Regions { names, distance }))
    }
}

/// The round trip of each pair of regions.
fn round_trips(names: &[String], given: &[RoundTrip]) -> Result<Pairs<Duration>, RegionsError> {
    let mut others = None;
    let mut found: Pairs<Option<Duration>> = Pairs::new(names.len(), |a, b| (a == b).then_some(Duration::ZERO));
    for RoundTrip { pair, time } in given {
        let Some(pair) = pair else {
            if others.replace(*time).is_some() {
                return Err(RegionsError::PairTwice("of all other pairs".to_string()));
            }
            continue;
        };
        // A name may have a hyphen too, so the pair is looked up whole.
        let is_pair = |a: usize, b: usize| a != b && *pair == format!("{}-{}", names[a], names[b]);
        let mut all = (0..names.len()).flat_map(|a| (0..names.len()).map(move |b| (a, b)));
        let Some((a, b)) = all.find(|(a, b)| is_pair(*a, *b)) else {
            return Err(RegionsError::UnknownPair(pair.clone(), names.join(", ")));
        };
        if found[(a, b)].is_some() {
            return Err(RegionsError::PairTwice(format!("of {pair}")));
        }
        found[(a, b)] = Some(*time);
        found[(b, a)] = Some(*time);
    }
    let mut missing = None;
    let complete = Pairs::new(names.len(), |a, b| {
        found[(a, b)].or(others).unwrap_or_else(|| {
            missing.get_or_insert((a, b));
            Duration::ZERO
        })
    });
    match missing {
        Some((a, b)) => Err(RegionsError::Missing(names[a].clone(), names[b].clone())),
        None => Ok(complete),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn regions(flags: &str) -> Result<Option<Regions>, String> {
        let words = ["cortado", "demo"].into_iter().chain(flags.split_whitespace());
        let Command::Demo(args) = Cli::try_parse_from(words).unwrap().command else { panic!("another command") };
        Regions::from_args(&args).map_err(|error| error.to_string())
    }

    #[test]
    fn one_round_trip_is_for_all_pairs() {
        assert!(regions("").unwrap().is_none());
        assert!(regions("--regions a,b,c").unwrap().unwrap().distance.is_none());
        let plan = regions("--regions a,b,c --rtt 28ms --bandwidth 297Mbit").unwrap().unwrap().distance.unwrap();
        assert_eq!((plan.names.len(), plan.bandwidth.map(|b| b.bits())), (3, Some(297_000_000)));
        let ms = |pair| plan.round_trips[pair].as_millis();
        assert_eq!([ms((0, 1)), ms((2, 0)), ms((1, 1))], [28, 28, 0]);
    }

    #[test]
    fn pairs_may_have_their_own() {
        let plan = regions("--regions us-east,us,east --rtt 28ms,us-east-us=40ms,east-us=9ms").unwrap().unwrap();
        let ms = |pair| plan.distance.as_ref().unwrap().round_trips[pair].as_millis();
        assert_eq!([ms((0, 1)), ms((1, 0)), ms((2, 1)), ms((0, 2))], [40, 40, 9, 28]);
        let all = "--regions a,b,c --rtt a-b=1ms,a-c=2ms,b-c=3ms";
        assert!(regions(all).is_ok(), "every pair is named");
    }

    #[test]
    fn flags_that_do_not_fit_are_refused() {
        for (flags, why) in [
            ("--regions a,b", "--regions names 2 region(s), not 3 to 9"),
            ("--regions a,b,c,d,e,f,g,h,i,j", "--regions names 10 region(s), not 3 to 9"),
            ("--regions a,b,a", "--regions names a twice"),
            ("--regions a,b,c=d", "--regions: \"c=d\" is no name: letters, digits, '-', '_' and '.'"),
            ("--regions a,b,", "--regions: \"\" is no name: letters, digits, '-', '_' and '.'"),
            ("--regions a,b,c --rtt 5ms,a-d=5ms", "--rtt: \"a-d\" is no pair of the regions a, b, c"),
            ("--regions a,b,c --rtt 5ms,a-a=5ms", "--rtt: \"a-a\" is no pair of the regions a, b, c"),
            ("--regions a,b,c --rtt 5ms,a-b=5ms,b-a=6ms", "--rtt gives the round trip of b-a twice"),
            ("--regions a,b,c --rtt 5ms,6ms", "--rtt gives the round trip of all other pairs twice"),
            (
                "--regions a,b,c --rtt a-b=5ms,a-c=5ms",
                "--rtt does not say how far b is from c; give a time for all other pairs too",
            ),
        ] {
            assert_eq!(regions(flags).unwrap_err(), why, "{flags}");
        }
    }
}
