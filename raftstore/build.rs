//! Generates the messages and the gRPC service of `proto/raftstore.proto`, in Rust alone: no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["proto/raftstore.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".cortado.raftstore.v1").compile_fds(descriptors)?;
    Ok(())
}
