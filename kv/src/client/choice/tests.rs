//! The order of the replicas, as tables: a line for each situation, the stores in the order in which they are tried.

use super::*;

/// Reads replicas such as `1:leader/far/28ms/load=3/avoid`.
fn candidates(text: &str) -> Vec<Candidate> {
    text.split_whitespace().map(candidate).collect()
}

fn candidate(text: &str) -> Candidate {
    let (store, rest) = text.split_once(':').expect("STORE:WORDS");
    let mut candidate = Candidate {
        store: StoreId::new(store.parse().expect("a number")),
        role: Role::Follower,
        near: Nearness::Far,
        rtt: Duration::ZERO,
        load: 0,
        avoid: false,
        store_fails: false,
        covers: Covers::No,
    };
    for word in rest.split('/') {
        match word {
            "leader" => (candidate.role, candidate.covers) = (Role::Leader, Covers::Yes),
            "follower" => candidate.role = Role::Follower,
            "learner" => candidate.role = Role::Learner,
            "own" => candidate.near = Nearness::Own,
            "zone" => candidate.near = Nearness::Zone,
            "region" => candidate.near = Nearness::Region,
            "far" => candidate.near = Nearness::Far,
            "avoid" => candidate.avoid = true,
            "covers" => candidate.covers = Covers::Yes,
            "maybe" => candidate.covers = Covers::Maybe,
            other => match (other.strip_suffix("ms"), other.strip_prefix("load=")) {
                (Some(ms), _) => candidate.rtt = Duration::from_millis(ms.parse().expect("a number")),
                (_, Some(load)) => candidate.load = load.parse().expect("a number"),
                _ => panic!("{other}"),
            },
        }
    }
    candidate
}

/// Checks lines of the form `REPLICAS -> STORES`.
fn check(policy: ReplicaPolicy, table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (given, expected) = line.split_once("->").expect("REPLICAS -> STORES");
        let mut ordered = candidates(given);
        order(policy, 0, &mut ordered);
        let stores: Vec<String> = ordered.iter().map(|candidate| candidate.store.to_string()).collect();
        assert_eq!(stores.join(" "), expected.trim(), "{policy:?}: {line}");
    }
}

#[test]
fn closest_is_zone_then_region_then_the_measured_time() {
    check(
        ReplicaPolicy::Closest,
        "1:leader/far         2:follower/own        3:follower/zone        -> 2 3 1
         1:leader/zone        2:follower/region     3:follower/far         -> 1 2 3
         1:leader/far/28ms    2:follower/far/3ms    3:follower/far/90ms    -> 2 1 3
         1:leader/far/2ms     2:follower/region/9ms 3:learner/zone/90ms    -> 3 2 1
         1:leader/far/2ms     2:follower/far        3:follower/far/1ms     -> 2 3 1
         1:leader/far         2:follower/own/avoid  3:follower/zone        -> 3 1 2
         1:leader/far/avoid   2:follower/own/avoid  3:follower/zone/avoid  -> 2 3 1",
    );
}

#[test]
fn a_follower_comes_before_the_leader_unless_it_is_avoided() {
    check(
        ReplicaPolicy::Follower,
        "1:leader/own         2:follower/far        3:follower/zone        -> 3 2 1
         1:leader/own         2:follower/far/9ms    3:follower/far/5ms     -> 3 2 1
         1:leader/own         2:follower/far        3:follower/zone/avoid  -> 2 1 3
         1:leader/far         2:follower/own/avoid  3:follower/zone/avoid  -> 1 2 3
         1:leader/far         2:learner/zone        3:follower/region      -> 2 3 1",
    );
}

#[test]
fn learners_come_first_and_others_if_there_is_none() {
    check(
        ReplicaPolicy::Learner,
        "1:leader/own         2:follower/zone       3:learner/far          -> 3 1 2
         1:leader/far         2:learner/region      3:learner/zone         -> 3 2 1
         1:leader/far         2:follower/own        3:follower/zone        -> 2 3 1
         1:leader/far         2:follower/own        3:learner/zone/avoid   -> 2 1 3",
    );
}

#[test]
fn the_leader_leads_the_order_of_the_leader_policy() {
    check(
        ReplicaPolicy::Leader,
        "1:follower/own       2:leader/far          3:learner/zone         -> 2 1 3
         1:follower/own       2:leader/far/avoid    3:learner/zone         -> 2 1 3",
    );
}

/// The stores that come first over many reads, in shares of a hundred.
fn shares(text: &str, reads: usize) -> Vec<usize> {
    let given = candidates(text);
    let mut first = vec![0usize; given.len()];
    for turn in 0..reads {
        let mut ordered = given.clone();
        order(ReplicaPolicy::Any, turn, &mut ordered);
        assert_eq!(ordered.len(), given.len());
        let at = given.iter().position(|candidate| candidate.store == ordered[0].store).expect("one of them");
        first[at] += 100;
    }
    first.into_iter().map(|count| count / reads).collect()
}

#[test]
fn any_takes_all_by_turns_as_their_load_allows() {
    assert_eq!(shares("1:leader/own 2:follower/far 3:follower/zone", 600), [33, 33, 33]);
    // Each read looks at two: the busiest is never the less loaded, the idle one is in two of three pairs.
    assert_eq!(shares("1:leader/load=9 2:follower/load=5 3:follower/load=1", 600), [0, 33, 66]);
    assert_eq!(shares("1:leader 2:follower/avoid 3:follower", 600), [50, 0, 50]);
    assert_eq!(shares("1:leader/avoid 2:follower/avoid", 600), [50, 50]);
    assert_eq!(shares("1:leader", 3), [100]);
    order(ReplicaPolicy::Any, 7, &mut []);
}

/// Loads that each read raises stay level.
#[test]
fn any_levels_loads_that_begin_unequal() {
    let mut given = candidates("1:leader/load=30 2:follower/load=0 3:follower/load=9");
    for turn in 0..300 {
        let mut ordered = given.clone();
        order(ReplicaPolicy::Any, turn, &mut ordered);
        let first = ordered[0].store;
        given.iter_mut().filter(|candidate| candidate.store == first).for_each(|candidate| candidate.load += 1);
    }
    let loads: Vec<u32> = given.iter().map(|candidate| candidate.load).collect();
    let (least, most) = (loads.iter().min().expect("three"), loads.iter().max().expect("three"));
    assert!(most - least <= 2, "{loads:?}");
}

#[test]
fn a_hedge_goes_to_the_nearest_replica_that_can_answer_and_is_not_busier() {
    let table = [
        // The primary is store 2.
        ("1:leader/far 2:follower/own 3:follower/zone/covers", Ok(3)),
        ("1:leader/far 2:follower/own 3:follower/zone", Ok(1)),
        ("1:leader/far 2:follower/own 3:follower/zone/maybe", Ok(1)),
        ("1:leader/far/avoid 2:follower/own 3:follower/zone/maybe", Ok(3)),
        ("2:leader/far 1:follower/own/maybe 3:follower/zone/covers", Ok(3)),
        ("1:leader/far/avoid 2:follower/own 3:follower/zone", Err(Suppressed::NoReplica)),
        ("2:leader/own 3:follower/zone", Err(Suppressed::NoReplica)),
        ("2:leader/own", Err(Suppressed::NoReplica)),
        ("1:leader/far/load=4 2:follower/own/load=1", Ok(1)),
        ("1:leader/far/load=5 2:follower/own/load=1", Err(Suppressed::Busier)),
        ("1:leader/far/load=5 2:follower/own/load=5", Ok(1)),
        ("1:leader/far/load=1 2:follower/own 3:follower/zone/covers/load=9", Ok(1)),
    ];
    for (given, expected) in table {
        let target = hedge_target(StoreId::new(2), false, &candidates(given));
        assert_eq!(target.map(|candidate| candidate.store.get()), expected, "{given}");
    }
    let unproven = hedge_target(StoreId::new(2), true, &candidates("2:leader/own 3:follower/zone"));
    assert_eq!(unproven.map(|candidate| candidate.store.get()), Ok(3));
}
