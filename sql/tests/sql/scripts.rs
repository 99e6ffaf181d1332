//! Runs the golden SQL scripts of `tests/scripts` against a server.

use std::path::Path;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let entries = std::fs::read_dir(folder).expect("the folder of scripts");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are scripts");
    for path in paths {
        super::support::script::run(&path).await;
    }
}
