//! Where a node is, and how near two nodes are.
//!
//! Pure. It reads the tiers `region` and `zone` of the locality that a node is started with. Other tiers do not count.

use std::sync::Arc;

/// The place of a node, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locality {
    region: Option<Arc<str>>,
    zone: Option<Arc<str>>,
}

/// How near a store is, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nearness {
    /// This node's own.
    Own,
    /// In the same zone.
    Zone,
    /// In the same region, and not known to be in the same zone.
    Region,
    /// In another region, or nobody knows.
    Far,
}

impl Locality {
    /// Reads a locality such as `region=eu,zone=eu-1`. What is not of the form `KEY=VALUE` is skipped.
    pub fn parse(text: &str) -> Locality {
        let tier = |name| {
            let tiers = text.split(',').filter_map(|part| part.split_once('='));
            tiers.filter(|(key, value)| *key == name && !value.is_empty()).map(|(_, value)| Arc::from(value)).next()
        };
        Locality { region: tier("region"), zone: tier("zone") }
    }

    /// How near a node at `other` is to one at `self`. Zones of different regions may have the same name.
    pub(super) fn nearness(&self, other: &Locality) -> Nearness {
        let same = |a: &Option<Arc<str>>, b: &Option<Arc<str>>| a.is_some() && a == b;
        if self.region != other.region {
            Nearness::Far
        } else if same(&self.zone, &other.zone) {
            Nearness::Zone
        } else if same(&self.region, &other.region) {
            Nearness::Region
        } else {
            Nearness::Far
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_nearer_than_regions() {
        for (own, other, expected) in [
            ("region=eu,zone=a", "region=eu,zone=a", Nearness::Zone),
            ("region=eu,zone=a", "region=eu,zone=b", Nearness::Region),
            ("region=eu,zone=a", "region=eu", Nearness::Region),
            ("region=eu,zone=a,rack=7", "zone=a,region=eu,rack=8", Nearness::Zone),
            // Zones of two regions may have one name.
            ("region=eu,zone=a", "region=us,zone=a", Nearness::Far),
            ("region=eu,zone=a", "zone=a", Nearness::Far),
            ("zone=a", "zone=a", Nearness::Zone),
            ("zone=a", "zone=b", Nearness::Far),
            ("", "", Nearness::Far),
            ("region=,zone", "region=,zone", Nearness::Far),
        ] {
            assert_eq!(Locality::parse(own).nearness(&Locality::parse(other)), expected, "{own:?} and {other:?}");
            assert_eq!(Locality::parse(other).nearness(&Locality::parse(own)), expected, "{other:?} and {own:?}");
        }
    }
}
