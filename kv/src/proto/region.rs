//! Wire form of regions: descriptors, epochs, peers, status and region errors.

use bytes::Bytes;
use raftstore::{
    Epoch, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionContext, RegionError, RegionId, RegionStatus, StoreId,
    Term,
};

use super::message::{MalformedMessage, malformed, pb, required};

impl From<Epoch> for pb::Epoch {
    fn from(epoch: Epoch) -> pb::Epoch {
        pb::Epoch { conf_ver: epoch.conf_ver, version: epoch.version }
    }
}

impl From<pb::Epoch> for Epoch {
    fn from(epoch: pb::Epoch) -> Epoch {
        Epoch { conf_ver: epoch.conf_ver, version: epoch.version }
    }
}

impl From<PeerMeta> for pb::Peer {
    fn from(peer: PeerMeta) -> pb::Peer {
        let role = match peer.role {
            PeerRole::Voter => pb::PeerRole::Voter,
            PeerRole::Learner => pb::PeerRole::Learner,
        };
        pb::Peer { id: peer.id.get(), store: peer.store.get(), role: role.into() }
    }
}

impl TryFrom<pb::Peer> for PeerMeta {
    type Error = MalformedMessage;

    fn try_from(peer: pb::Peer) -> Result<PeerMeta, MalformedMessage> {
        let role = match peer.role() {
            pb::PeerRole::Voter => PeerRole::Voter,
            pb::PeerRole::Learner => PeerRole::Learner,
            pb::PeerRole::Unspecified => return Err(malformed("Peer", "no known role")),
        };
        Ok(PeerMeta { id: PeerId::new(peer.id), store: StoreId::new(peer.store), role })
    }
}

impl From<Region> for pb::Region {
    fn from(region: Region) -> pb::Region {
        pb::Region {
            id: region.id.get(),
            start: Bytes::from(region.start),
            end: Bytes::from(region.end),
            epoch: Some(region.epoch.into()),
            peers: region.peers.into_iter().map(pb::Peer::from).collect(),
        }
    }
}

impl TryFrom<pb::Region> for Region {
    type Error = MalformedMessage;

    fn try_from(region: pb::Region) -> Result<Region, MalformedMessage> {
        Ok(Region {
            id: region_id(region.id, "Region")?,
            start: region.start.into(),
            end: region.end.into(),
            epoch: required(region.epoch, "Region", "no epoch")?.into(),
            peers: region.peers.into_iter().map(PeerMeta::try_from).collect::<Result<_, _>>()?,
        })
    }
}

impl From<RegionStatus> for pb::RegionStatus {
    fn from(status: RegionStatus) -> pb::RegionStatus {
        pb::RegionStatus {
            region: Some(status.region.into()),
            leader: status.leader.map(pb::Peer::from),
            term: status.term.get(),
            applied: status.applied.get(),
            is_leader: status.is_leader,
        }
    }
}

impl TryFrom<pb::RegionStatus> for RegionStatus {
    type Error = MalformedMessage;

    fn try_from(status: pb::RegionStatus) -> Result<RegionStatus, MalformedMessage> {
        Ok(RegionStatus {
            region: required(status.region, "RegionStatus", "no region")?.try_into()?,
            leader: status.leader.map(PeerMeta::try_from).transpose()?,
            term: Term::new(status.term),
            applied: LogIndex::new(status.applied),
            is_leader: status.is_leader,
        })
    }
}

impl From<Option<RegionStatus>> for pb::LocateResponse {
    fn from(status: Option<RegionStatus>) -> pb::LocateResponse {
        pb::LocateResponse { status: status.map(pb::RegionStatus::from) }
    }
}

impl TryFrom<pb::LocateResponse> for Option<RegionStatus> {
    type Error = MalformedMessage;

    fn try_from(response: pb::LocateResponse) -> Result<Option<RegionStatus>, MalformedMessage> {
        response.status.map(RegionStatus::try_from).transpose()
    }
}

impl From<RegionContext> for pb::RegionContext {
    fn from(context: RegionContext) -> pb::RegionContext {
        pb::RegionContext { region: context.region.get(), epoch: Some(context.epoch.into()) }
    }
}

impl TryFrom<pb::RegionContext> for RegionContext {
    type Error = MalformedMessage;

    fn try_from(context: pb::RegionContext) -> Result<RegionContext, MalformedMessage> {
        Ok(RegionContext {
            region: region_id(context.region, "RegionContext")?,
            epoch: required(context.epoch, "RegionContext", "no epoch")?.into(),
        })
    }
}

impl From<RegionError> for pb::RegionError {
    fn from(error: RegionError) -> pb::RegionError {
        use pb::region_error::Error;
        let error = match error {
            RegionError::NotLeader { region, leader } => {
                Error::NotLeader(pb::NotLeader { region: region.get(), leader: leader.map(pb::Peer::from) })
            }
            RegionError::RegionNotFound { region, store } => {
                Error::RegionNotFound(pb::RegionNotFound { region: region.get(), store: store.get() })
            }
            RegionError::EpochNotMatch { current } => Error::EpochNotMatch((*current).into()),
            RegionError::KeyNotInRegion { region } => Error::KeyNotInRegion(region.get()),
            RegionError::ServerBusy { store, what } => Error::ServerBusy(pb::ServerBusy { store: store.get(), what }),
            RegionError::StaleCommand { region } => Error::StaleCommand(region.get()),
            RegionError::NotReady { region, why } => Error::NotReady(pb::NotReady { region: region.get(), why }),
        };
        pb::RegionError { error: Some(error) }
    }
}

impl TryFrom<pb::RegionError> for RegionError {
    type Error = MalformedMessage;

    fn try_from(error: pb::RegionError) -> Result<RegionError, MalformedMessage> {
        use pb::region_error::Error;
        Ok(match required(error.error, "RegionError", "no known kind")? {
            Error::NotLeader(e) => RegionError::NotLeader {
                region: RegionId::new(e.region),
                leader: e.leader.map(PeerMeta::try_from).transpose()?,
            },
            Error::RegionNotFound(e) => {
                RegionError::RegionNotFound { region: RegionId::new(e.region), store: StoreId::new(e.store) }
            }
            Error::EpochNotMatch(region) => RegionError::EpochNotMatch { current: Box::new(region.try_into()?) },
            Error::KeyNotInRegion(region) => RegionError::KeyNotInRegion { region: RegionId::new(region) },
            Error::ServerBusy(e) => RegionError::ServerBusy { store: StoreId::new(e.store), what: e.what },
            Error::StaleCommand(region) => RegionError::StaleCommand { region: RegionId::new(region) },
            Error::NotReady(e) => RegionError::NotReady { region: RegionId::new(e.region), why: e.why },
        })
    }
}

/// Converts a region id and refuses the reserved 0.
fn region_id(raw: u64, message: &'static str) -> Result<RegionId, MalformedMessage> {
    if raw == 0 { Err(malformed(message, "region id 0")) } else { Ok(RegionId::new(raw)) }
}
