//! Foreign keys between sessions of several gateways: whatever runs together, no row refers to one that is not there.

use std::time::Duration;

use super::support::{TestServer, database};
use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use kv::memory::{Faults, MemoryCluster};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sql::catalog::Catalog;
use sql::exec::check_table;
use tokio_postgres::{Client, SimpleQueryMessage};

async fn numbers(client: &Client, text: &str) -> Vec<i64> {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).expect("no NULL").parse().expect("an integer")),
        _ => None,
    });
    rows.collect()
}

/// The SQLSTATE of a statement; empty if it succeeds.
async fn state(client: &Client, text: &str) -> String {
    match client.batch_execute(text).await {
        Ok(()) => String::new(),
        Err(error) => error.code().unwrap_or_else(|| panic!("{text}: {error}")).code().to_owned(),
    }
}

async fn two() -> ([TestServer; 2], Client, Client) {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    (servers, a, b)
}

const PAIR: &str = "create table p (id int primary key, x int unique); create table c (p int references p (id), x int)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_of_a_parent_and_an_insert_of_a_child_never_both_commit() {
    let (_servers, a, b) = two().await;
    a.batch_execute(PAIR).await.expect("tables");
    let (mut deleted, mut inserted) = (0, 0);
    for id in 0..200 {
        a.batch_execute(&format!("insert into p values ({id}, {id})")).await.expect("a parent");
        let level = ["", "", "begin isolation level read committed;", "begin isolation level repeatable read;"][id % 4];
        let end = if level.is_empty() { "" } else { "; commit" };
        let delete = format!("{level} delete from p where id = {id}{end}");
        let insert = format!("{level} insert into c values ({id}, 1){end}");
        let (gone, come) = tokio::join!(state(&a, &delete), state(&b, &insert));
        state(&a, "rollback").await;
        state(&b, "rollback").await;
        assert!(!(gone.is_empty() && come.is_empty()), "both for {id}");
        for code in [&gone, &come] {
            assert!(["", "23503", "40001", "40P01"].contains(&code.as_str()), "{id}: {code}");
        }
        deleted += usize::from(gone.is_empty());
        inserted += usize::from(come.is_empty());
    }
    assert!(deleted + inserted > 100, "{deleted} deleted, {inserted} inserted");
    let orphans = "select count(*) from c where not exists (select from p where p.id = c.p)";
    assert_eq!(numbers(&a, orphans).await, [0]);
}

/// A transaction with one snapshot does not see the child, but must not delete its parent.
#[tokio::test]
async fn a_snapshot_hides_no_child_from_its_parent() {
    let (_servers, a, b) = two().await;
    a.batch_execute(PAIR).await.expect("tables");
    for (id, action) in ["delete from p where id = 0", "update p set id = 100 where id = 1"].iter().enumerate() {
        a.batch_execute(&format!("insert into p values ({id}, {id})")).await.expect("a parent");
        a.batch_execute("begin isolation level repeatable read; select count(*) from c").await.expect("a snapshot");
        b.batch_execute(&format!("insert into c values ({id}, 1)")).await.expect("a child");
        assert_eq!(state(&a, action).await, "40001", "{action}");
        a.batch_execute("rollback").await.expect("rolls back");
        assert_eq!(state(&a, action).await, "23503", "{action}");
    }
    // Nor does it see that a row has come to refer to another one.
    a.batch_execute("insert into p values (8, 8), (9, 9); insert into c values (8, 8)").await.expect("rows");
    a.batch_execute("begin isolation level repeatable read; select count(*) from c").await.expect("a snapshot");
    b.batch_execute("update c set p = 9 where p = 8").await.expect("another parent");
    assert_eq!(state(&a, "delete from p where id = 9").await, "40001");
    a.batch_execute("rollback").await.expect("rolls back");
    a.batch_execute("begin isolation level repeatable read; select count(*) from p").await.expect("a snapshot");
    b.batch_execute("delete from c; delete from p where id = 0").await.expect("the parent is gone");
    assert_eq!(state(&a, "insert into c values (0, 1)").await, "40001", "it sees the parent");
    a.batch_execute("rollback").await.expect("rolls back");
    a.batch_execute("begin isolation level repeatable read; select count(*) from p").await.expect("a snapshot");
    b.batch_execute("insert into p values (7, 7)").await.expect("a parent");
    assert_eq!(state(&a, "insert into c values (7, 1)").await, "23503", "it does not see it");
}

/// A cascade waits for a row that is referred to meanwhile, and then sees what refers to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cascade_sees_what_it_has_waited_for() {
    let (_servers, a, b) = two().await;
    let tables = "create table g (id int primary key);
                  create table p (id int primary key, g int references g on delete cascade);
                  create table c (p int references p on delete cascade)";
    a.batch_execute(tables).await.expect("tables");
    for id in 0..20 {
        a.batch_execute(&format!("insert into g values ({id}); insert into p values ({id}, {id})"))
            .await
            .expect("rows");
        b.batch_execute(&format!("begin; insert into c values ({id})")).await.expect("a child");
        let text = format!("delete from g where id = {id}");
        let (gone, done) = tokio::join!(state(&a, &text), state(&b, "commit"));
        assert_eq!((gone.as_str(), done.as_str()), ("", ""), "{id}");
    }
    assert_eq!(numbers(&a, "select count(*) from c").await, [0]);
    assert_eq!(numbers(&a, "select count(*) from p").await, [0]);
}

/// A row that moves to another primary key refers as before, without a look at what it refers to. A deletion that has
/// seen it where it was once removed only its parent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_moves_is_found_where_it_is_now() {
    let (_servers, a, b) = two().await;
    let tables = "create table p (id int primary key);
                  create table cascades (id int primary key, p int references p on delete cascade);
                  create table nulls (id int primary key, p int references p on delete set null);
                  create table refuses (id int primary key, p int references p)";
    a.batch_execute(tables).await.expect("tables");
    for (at, (table, expected)) in [("cascades", ""), ("nulls", ""), ("refuses", "23503")].into_iter().enumerate() {
        a.batch_execute(&format!("insert into p values ({at}); insert into {table} values (1, {at})"))
            .await
            .expect("rows");
        b.batch_execute(&format!("begin; update {table} set id = 2 where id = 1")).await.expect("moves");
        let delete = format!("delete from p where id = {at}");
        let (deleted, ()) = tokio::join!(state(&a, &delete), async {
            wait_for_waiter(&b).await;
            b.batch_execute("commit").await.expect("commits");
        });
        assert_eq!(deleted, expected, "{table}");
        let orphans = format!("select count(*) from {table} where p is not null and p not in (select id from p)");
        assert_eq!(numbers(&a, &orphans).await, [0], "{table}");
    }
    assert_eq!(numbers(&a, "select count(*) from cascades").await, [0]);
    assert_eq!(numbers(&a, "select id from nulls where p is null").await, [2]);
    assert_eq!(numbers(&a, "select p from refuses").await, [2]);
}

/// Until some session waits for a row.
async fn wait_for_waiter(client: &Client) {
    for _ in 0..1_000 {
        if numbers(client, "select count(*) from pg_locks where not granted").await != [0] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody waits");
}

/// The key of a row that was deleted after the snapshot can be locked, because nothing is there. What the snapshot has
/// there cannot be changed all the same: it once came back, without its entries in indexes.
#[tokio::test]
async fn a_row_that_was_deleted_does_not_come_back() {
    let (_servers, a, b) = two().await;
    a.batch_execute("create table p (id int primary key, x int unique); insert into p values (1, 1), (2, 2)")
        .await
        .expect("rows");
    for change in
        ["update p set x = x where id = 1", "delete from p where x = 1", "select from p where x = 1 for update"]
    {
        a.batch_execute("begin isolation level repeatable read; select count(*) from p").await.expect("a snapshot");
        b.batch_execute("delete from p where id = 1").await.expect("deletes");
        a.batch_execute("insert into p values (1, 2) on conflict do nothing").await.expect("nothing to do");
        assert_eq!(state(&a, change).await, "40001", "{change}");
        a.batch_execute("rollback").await.expect("rolls back");
        assert_eq!(numbers(&a, "select id from p order by id").await, [2]);
        assert_eq!(numbers(&a, "select x from p where x = 1").await, [0i64; 0]);
        a.batch_execute("insert into p values (1, 1)").await.expect("a row");
    }
}

/// While a foreign key is added, others change both tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_key_that_is_added_holds_for_all_rows() {
    let (_servers, a, b) = two().await;
    a.batch_execute("create table p (id int primary key); create table c (p int)").await.expect("tables");
    let orphans = "select count(*) from c where not exists (select from p where p.id = c.p)";
    let mut added = 0;
    for round in 0..12 {
        a.batch_execute(&format!("insert into p values ({round}); insert into c values ({round})"))
            .await
            .expect("rows");
        let delete = format!("delete from p where id = {round}");
        let alter = "alter table c add constraint f foreign key (p) references p";
        let (altered, deleted) = tokio::join!(state(&a, alter), state(&b, &delete));
        if altered.is_empty() {
            added += 1;
            assert_ne!(deleted, "", "round {round}");
            assert_eq!(numbers(&a, orphans).await, [0], "round {round}");
            a.batch_execute("alter table c drop constraint f").await.expect("drops");
        } else {
            assert_eq!((altered.as_str(), deleted.as_str()), ("23503", ""), "round {round}");
        }
        a.batch_execute("truncate c, p").await.expect("truncates");
    }
    let alter = "insert into p values (1); insert into c values (1);
                 alter table c add constraint f foreign key (p) references p";
    a.batch_execute(alter).await.expect("adds");
    assert_eq!(state(&b, "delete from p").await, "23503", "the other gateway knows it, {added} others");
}

const STORM: &str = "
    create table p (id int primary key, x int unique);
    create table c1 (id int primary key, p int references p);
    create table c2 (id int primary key, p int references p on delete cascade on update cascade);
    create index on c2 (p);
    create table c3 (id int, x int references p (x) on delete set null on update cascade);
    create table c4 (c2 int not null references c2 on delete cascade on update cascade);
    create table c5 (p int default 0 references p on delete set default on update restrict);
    insert into p select i, i from generate_series(0, 11) as i;
";

fn statement(draws: &mut StdRng) -> String {
    let (a, b) = (draws.random_range(0..12), draws.random_range(0..12));
    match draws.random_range(0..18) {
        0 | 1 => format!("insert into p values ({a}, {b}) on conflict do nothing"),
        2 | 3 => format!("delete from p where id = {a}"),
        4 => format!("update p set id = {b} where id = {a}"),
        5 => format!("update p set x = {b} where x = {a}"),
        6 => format!("update p set x = x where id in ({a}, {b})"),
        7 | 8 => format!("insert into c1 values ({a}, {b}) on conflict (id) do update set p = excluded.p"),
        9 => format!("delete from c1 where p = {a}"),
        10 | 11 => format!("insert into c2 values ({a}, {b}) on conflict (id) do update set p = excluded.p"),
        12 => format!("update c2 set id = {b} where id = {a}"),
        13 => format!("insert into c3 values ({a}, {b})"),
        14 => format!("insert into c4 values ({a})"),
        15 => format!("insert into c5 values ({a})"),
        16 => format!("delete from p using c3 where c3.x = p.x and c3.id = {a}"),
        _ => format!("delete from c5 where p = {a}"),
    }
}

async fn session(client: Client, seed: u64) -> u32 {
    let mut draws = StdRng::seed_from_u64(seed);
    let mut succeeded = 0;
    for _ in 0..80 {
        let statements = if draws.random_range(0..3) == 0 { draws.random_range(1..4) } else { 0 };
        let level = ["read committed", "repeatable read"][draws.random_range(0..2)];
        if statements > 0 {
            state(&client, &format!("begin isolation level {level}")).await;
        }
        for _ in 0..statements.max(1) {
            let text = statement(&mut draws);
            let code = state(&client, &text).await;
            let expected = ["", "23503", "23505", "23502", "40001", "40P01", "55P03", "08007", "25P02", "57P03"];
            assert!(expected.contains(&code.as_str()), "seed {seed}: {text}: {code}");
            succeeded += u32::from(code.is_empty());
        }
        if statements > 0 {
            state(&client, "commit").await;
            state(&client, "rollback").await;
        }
    }
    succeeded
}

async fn storm(seed: u64, faults: Faults) {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let client = servers[0].connect().await;
    client.batch_execute(STORM).await.expect("tables");
    cluster.set_faults(faults);
    let mut sessions = Vec::new();
    for number in 0..6u64 {
        let client = servers[usize::from(number % 2 == 1)].connect().await;
        client.batch_execute("set lock_timeout = '300ms'").await.ok();
        sessions.push(tokio::spawn(session(client, seed * 100 + number)));
    }
    let mut succeeded = 0;
    for session in sessions {
        succeeded += session.await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    cluster.set_faults(Faults::none());
    assert!(succeeded > 60, "seed {seed}: {succeeded}");
    for (child, column, parent, key) in [
        ("c1", "p", "p", "id"),
        ("c2", "p", "p", "id"),
        ("c3", "x", "p", "x"),
        ("c4", "c2", "c2", "id"),
        ("c5", "p", "p", "id"),
    ] {
        let text = format!(
            "select count(*) from {child} as c where c.{column} is not null
             and not exists (select from {parent} as q where q.{key} = c.{column})"
        );
        assert_eq!(numbers(&client, &text).await, [0], "seed {seed}: orphans of {child}");
    }
    let txn = database(&cluster).begin().await.expect("a timestamp");
    let catalog = Catalog::load(&txn).await.expect("a catalog");
    for table in ["p", "c2"] {
        let found = check_table(&txn, &catalog, table).await.expect("a table");
        assert_eq!(found.described, Vec::<String>::new(), "seed {seed}: {table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_row_refers_to_nothing() {
    for seed in 0..4 {
        storm(seed, Faults::none()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_row_refers_to_nothing_under_faults() {
    for seed in 10..14 {
        storm(seed, Faults { delay_max: Duration::from_millis(2), ..Faults::mixed(seed) }).await;
    }
}

/// Values that refer to another table are looked up while the statement runs; those of its own table wait.
#[tokio::test]
async fn many_rows_refer_to_others() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let tables = "create table p (id int primary key);
                  create table q (id int primary key, p int references p, up int references q);
                  create index on q (p);
                  create index on q (up);
                  insert into p select generate_series(1, 5000)";
    client.batch_execute(tables).await.expect("tables");
    let insert = "insert into q select i, i, 5001 - i from generate_series(1, 5000) as i";
    assert_eq!(state(&client, insert).await, "", "the first row refers to the last one");
    let too_far = "insert into q select i + 5000, i, i from generate_series(1, 5001) as i";
    assert_eq!(state(&client, too_far).await, "23503");
    let own = "insert into q select i + 5000, i, i + 5001 from generate_series(1, 5000) as i";
    assert_eq!(state(&client, own).await, "23503", "the last row refers to one behind it");
    assert_eq!(numbers(&client, "select count(*) from q").await, [5_000]);
    assert_eq!(state(&client, "delete from p where id <= 10").await, "23503");
    assert_eq!(state(&client, "delete from q").await, "");
    assert_eq!(state(&client, "delete from p").await, "");
}

/// Also through the extended protocol.
#[tokio::test]
async fn create_table_as_counts_its_rows() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let count = client.execute("create table n as select i, i * 2 as j from generate_series(1, 700) as i", &[]).await;
    assert_eq!(count.expect("creates"), 700);
    assert_eq!(client.execute("select j into m from n where i > 690", &[]).await.expect("creates"), 10);
    assert_eq!(numbers(&client, "select sum(j) from m").await, [13_910]);
}

/// COPY checks at its end, computes generated columns and leaves them out.
#[tokio::test]
async fn a_copy_meets_constraints() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let tables = "create table p (id int primary key);
                  create table g (id int primary key, up int references g, p int default 1 references p check (p < 5),
                                  twice int generated always as (id * 2) stored);
                  insert into p values (1), (2), (7)";
    client.batch_execute(tables).await.expect("tables");
    let copy = async |columns: &str, data: &'static str| {
        let sink = client.copy_in(&format!("copy g {columns} from stdin")).await.expect("begins");
        futures::pin_mut!(sink);
        // What is wrong shows when it is sent, or at the end.
        let _ = sink.send(Bytes::from_static(data.as_bytes())).await;
        match sink.finish().await {
            Ok(rows) => rows.to_string(),
            Err(error) => error.code().expect("of the server").code().to_owned(),
        }
    };
    assert_eq!(copy("(id, up)", "1\t2\n2\t1\n").await, "2", "rows that refer to each other");
    assert_eq!(copy("", "3\t9\t1\n").await, "23503");
    assert_eq!(copy("", "3\t1\t3\n").await, "23503");
    assert_eq!(copy("", "3\t1\t7\n").await, "23514");
    assert_eq!(copy("", "3\t1\t2\n").await, "1");
    assert!(
        client
            .copy_in::<_, Bytes>("copy g (id, twice) from stdin")
            .await
            .is_err_and(|error| { error.code().is_some_and(|code| code.code() == "42P10") })
    );
    let stream = client.copy_out("copy g to stdout").await.expect("begins");
    let rows: Vec<Bytes> = stream.try_collect().await.expect("all rows");
    assert_eq!(rows.concat(), b"1\t2\t1\n2\t1\t1\n3\t1\t2\n");
    assert_eq!(numbers(&client, "select sum(twice) from g").await, [12]);
}
