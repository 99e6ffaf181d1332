//! Wire form of what stores say about grants.

use raftstore::{LogIndex, RegionId, StoreId};
use tso::Timestamp;

use super::message::{MalformedMessage, malformed, pb, required};
use crate::grant::{AskGrants, Exchange, GivenGrants, Grant, PushAnswer, PushGrants};

impl From<Grant> for pb::Grant {
    fn from(grant: Grant) -> pb::Grant {
        pb::Grant { region: grant.region.get(), version: grant.version, ts: grant.ts.raw(), index: grant.index.get() }
    }
}

impl TryFrom<pb::Grant> for Grant {
    type Error = MalformedMessage;

    fn try_from(grant: pb::Grant) -> Result<Grant, MalformedMessage> {
        if grant.region == 0 {
            return Err(malformed("Grant", "region id 0"));
        }
        let ts = Timestamp::from_raw(grant.ts);
        if ts == Timestamp::MAX {
            return Err(malformed("Grant", "a timestamp that no oracle issues"));
        }
        let (region, index) = (RegionId::new(grant.region), LogIndex::new(grant.index));
        Ok(Grant { region, version: grant.version, ts, index })
    }
}

impl From<AskGrants> for pb::AskGrants {
    fn from(ask: AskGrants) -> pb::AskGrants {
        pb::AskGrants { from: ask.from.get(), ts: ask.ts.raw(), regions: from_regions(ask.regions) }
    }
}

impl TryFrom<pb::AskGrants> for AskGrants {
    type Error = MalformedMessage;

    fn try_from(ask: pb::AskGrants) -> Result<AskGrants, MalformedMessage> {
        let (from, ts) = (StoreId::new(ask.from), Timestamp::from_raw(ask.ts));
        Ok(AskGrants { from, ts, regions: to_regions(ask.regions) })
    }
}

impl From<GivenGrants> for pb::GivenGrants {
    fn from(given: GivenGrants) -> pb::GivenGrants {
        let refused = given.refused.into_iter();
        pb::GivenGrants {
            ts: given.ts.raw(),
            asked: given.asked,
            grants: given.grants.into_iter().map(pb::Grant::from).collect(),
            refused: refused
                .map(|(region, error)| pb::RefusedGrant { region: region.get(), error: Some(error.into()) })
                .collect(),
        }
    }
}

impl TryFrom<pb::GivenGrants> for GivenGrants {
    type Error = MalformedMessage;

    fn try_from(given: pb::GivenGrants) -> Result<GivenGrants, MalformedMessage> {
        let refused = given.refused.into_iter().map(|refused| {
            let error = required(refused.error, "RefusedGrant", "no error")?.try_into()?;
            Ok((RegionId::new(refused.region), error))
        });
        Ok(GivenGrants {
            ts: Timestamp::from_raw(given.ts),
            asked: given.asked,
            grants: to_grants(given.grants)?,
            refused: refused.collect::<Result<_, MalformedMessage>>()?,
        })
    }
}

impl From<PushGrants> for pb::PushGrants {
    fn from(push: PushGrants) -> pb::PushGrants {
        pb::PushGrants {
            from: push.from.get(),
            ts: push.ts.raw(),
            grants: push.grants.into_iter().map(pb::Grant::from).collect(),
            exchange: push.exchange.map(|exchange| pb::Exchange {
                incarnation: exchange.incarnation,
                number: exchange.number,
                is_full: exchange.is_full,
                withdrawn: from_regions(exchange.withdrawn),
            }),
        }
    }
}

impl TryFrom<pb::PushGrants> for PushGrants {
    type Error = MalformedMessage;

    fn try_from(push: pb::PushGrants) -> Result<PushGrants, MalformedMessage> {
        let ts = Timestamp::from_raw(push.ts);
        if ts == Timestamp::MAX {
            return Err(malformed("PushGrants", "a timestamp that no oracle issues"));
        }
        let exchange = push.exchange.map(|exchange| Exchange {
            incarnation: exchange.incarnation,
            number: exchange.number,
            is_full: exchange.is_full,
            withdrawn: to_regions(exchange.withdrawn),
        });
        Ok(PushGrants { from: StoreId::new(push.from), ts, grants: to_grants(push.grants)?, exchange })
    }
}

impl From<PushAnswer> for pb::PushAnswer {
    fn from(answer: PushAnswer) -> pb::PushAnswer {
        pb::PushAnswer { lacks: answer.lacks, wanted: from_regions(answer.wanted) }
    }
}

impl From<pb::PushAnswer> for PushAnswer {
    fn from(answer: pb::PushAnswer) -> PushAnswer {
        PushAnswer { lacks: answer.lacks, wanted: to_regions(answer.wanted) }
    }
}

fn to_grants(grants: Vec<pb::Grant>) -> Result<Vec<Grant>, MalformedMessage> {
    grants.into_iter().map(Grant::try_from).collect()
}

fn from_regions(regions: Vec<RegionId>) -> Vec<u64> {
    regions.into_iter().map(RegionId::get).collect()
}

fn to_regions(regions: Vec<u64>) -> Vec<RegionId> {
    regions.into_iter().map(RegionId::new).collect()
}
