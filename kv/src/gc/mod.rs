//! Garbage collection of versions: which records no read needs any more, and how they leave the store.
//!
//! The *safe point* S is a timestamp below which nothing reads. A read at exactly S is allowed. So of each key the
//! newest data record at or below S stays, and everything above S; the rest is garbage. A collection changes no answer
//! of a read at or above S, and it is not replicated: each store collects at its own pace.
//!
//! # From the choice of S to the first record that goes
//!
//! 1. S is chosen and persisted in the system region. That is the announcement.
//! 2. Every region refuses writes with a start_ts at or below S from then on.
//! 3. The locks with such a start_ts are resolved, in *every* region of the cluster: the status of a transaction is a
//!    record that step 5 may remove, and a lock in another region must not outlive it.
//! 4. Each region publishes S in its log, so that it is applied in order and travels with the region's snapshots. From
//!    then on a read checks S after it has read. Below S it fails, whatever it has read.
//! 5. [`CollectBound`] rises to the least published S of all replicas of the store. What is at or below it is collected
//!    once the publication is *flushed*.
//!
//! After step 4 every transaction with a start_ts at or below S is decided at every replica that has applied the
//! publication: each of its keys has a commit record or a rollback mark, or neither, and never will have more.
//!
//! # Why a store may collect at once, whatever the other replicas do
//!
//! A replica that serves a read has applied an index that was given to it after the read began: as the leader, which
//! has applied an entry of its own term; or by a grant or a read index. A replica that collected above the published S
//! of the leader could be given an index below the publication, forget S in a crash, and read below it. Two rules
//! exclude that. A replica collects only up to an S that it has applied itself and that its store has flushed: it comes
//! back from a crash with at least this S. And it never goes back below its applied index while it runs. So wherever a
//! record was collected, the S that allowed it is in force, and the read that would miss the record fails.
//!
//! A snapshot of a region that is built while the store collects holds the S of its index in the same consistent view,
//! or a later one. What a compaction removes meanwhile is at or below the S that this store has published before; the
//! receiver of the snapshot gets an index at or above that entry. A receiver that has a lower S of its own loses it
//! with the installation. A long value whose write record was removed in between arrives alone; it is found as any
//! other.
//!
//! A replica that is new on a store would bring an S below the store's bound. Whoever adds one must not let it serve,
//! nor let its lower S be used for reads, before its published S has reached the bound.
//!
//! # Compaction
//!
//! A compaction filter of RocksDB gets every record that a compaction rewrites, in key order, and drops garbage on the
//! way ([`collect`]). Its view is partial: of a key it sees the records of the files that are compacted. So it drops
//! only what is older than a record that it has seen itself. RocksDB snapshots are not respected; a reader checks S
//! after it has read, so it fails where it could have missed a record. A filter must not see less than what it drops
//! for: S is read before the filter's view of the store is taken.
//!
//! A delete that is the newest record at or below S is garbage once no older record of its key is left anywhere. An
//! older record may be in any level, also in a higher one: levels order the writes of one key, and each version is a
//! key of its own to RocksDB. So the filter looks the older records up. It does so only in the compactions that the
//! collection itself requests.
//!
//! A long value goes when no write record names it. No list of values to delete is kept, which a crash could lose: the
//! filter of `Cf::Default` looks for the write record. A value that was left behind, for whatever reason, is found by
//! the next requested compaction of its range. Marks of rollbacks go in any compaction.
//!
//! # Crash
//!
//! The result of a compaction is durable at once, while memtables are lost. A filter sees flushed records only, and
//! drops a record for a newer one that is flushed as well. What it looks up may be in a memtable. If a crash loses
//! that, the replay of the log brings it back before the replica serves a read.
//!
//! # When a compaction is asked for
//!
//! Compactions that RocksDB runs anyway drop what they meet. The rest needs somebody to ask. The `tracker` counts
//! writes per bucket of keys as they are applied; when the safe point has passed many, a sample of the bucket is
//! examined, and the bucket is compacted if a tenth of it or more is garbage. A survey samples the whole store after a
//! start, and now and then, so what the tracker does not know is found as well. Cold data without garbage is never
//! rewritten.
//!
//! # Layers
//!
//! 1. `bound`, `collect`, `metrics`, `tracker`: the safe point of a store; the decision on each record (pure); metrics;
//!    where garbage may be (pure)
//! 2. `filter`, `publish`: the decisions in a compaction; how far a store may collect
//! 3. `examine`: samples of a range
//! 4. `worker`: the background work

pub mod bound;
pub mod collect;
pub mod examine;
pub mod filter;
pub mod metrics;
mod publish;
pub mod tracker;
pub mod worker;

pub use bound::CollectBound;
pub use collect::{Collector, Verdict};
pub use metrics::GcMetrics;
pub use publish::follow_published;
pub use worker::{Collection, GcConfig, Worker};
