//! pgbench's tables, made by hand: with the widths of its own, but without CHAR(n), and `timestamptz` in the history.

use crate::client::connect;

/// Tellers and accounts of a branch.
const TELLERS: i64 = 10;
const ACCOUNTS: i64 = 100_000;
/// Rows of an INSERT.
const BATCH: i64 = 500;

/// Makes the tables and their rows.
pub async fn load(port: u16, scale: i64) {
    let client = connect(port).await;
    for table in [
        "pgbench_branches (bid int PRIMARY KEY, bbalance int, filler varchar(88))",
        "pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler varchar(84))",
        "pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler varchar(84))",
        "pgbench_history (tid int, bid int, aid int, delta int, mtime timestamptz, filler varchar(22))",
    ] {
        client.batch_execute(&format!("CREATE TABLE {table}")).await.unwrap();
    }
    for (table, rows, width) in [("branches", 1, 88), ("tellers", TELLERS, 84), ("accounts", ACCOUNTS, 84)] {
        let filler = " ".repeat(width);
        let (of_branch, total) = (rows, rows * scale);
        for first in (1..=total).step_by(BATCH as usize) {
            let row = |id: i64| match table {
                "branches" => format!("({id},0,'{filler}')"),
                _ => format!("({id},{},0,'{filler}')", (id - 1) / of_branch + 1),
            };
            let rows: Vec<String> = (first..(first + BATCH).min(total + 1)).map(row).collect();
            let insert = format!("INSERT INTO pgbench_{table} VALUES {}", rows.join(","));
            client.batch_execute(&insert).await.unwrap();
        }
    }
}

/// Asserts that all balances and the history agree, and that the history has a row for each transaction.
pub async fn check(port: u16, transactions: u64) {
    let client = connect(port).await;
    let mut sums = Vec::new();
    for sum in ["bbalance) FROM pgbench_branches", "tbalance) FROM pgbench_tellers", "abalance) FROM pgbench_accounts"]
    {
        sums.push(client.query_one(&format!("SELECT sum({sum}"), &[]).await.unwrap().get::<_, Option<i64>>(0));
    }
    let history = client.query_one("SELECT sum(delta), count(*) FROM pgbench_history", &[]).await.unwrap();
    sums.push(history.get(0));
    assert!(sums.iter().all(|sum| *sum == sums[0]), "branches, tellers, accounts and history differ: {sums:?}");
    assert_eq!(history.get::<_, i64>(1) as u64, transactions, "rows of the history");
    eprintln!("port {port}: {transactions} transactions, all sums are {:?}", sums[0]);
}
