#!/usr/bin/env bash
# Compiles RocksDB once for all clones, profiles and target folders, and links it into this clone.
#
# librocksdb-sys compiles it again in each target folder and profile, file by file, in over twelve minutes on two cores.
# This script compiles the same sources, of the version in Cargo.lock, in two minutes, twenty files to a unit. The
# result goes to a cache folder whose name contains a hash of everything it depends on. `.rocksdb/VERSION` links to it,
# and `.cargo/config.toml` points librocksdb-sys there. If the library exists, the script exits at once.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'rocksdb: %s\n' "$*" >&2; }

UNIT_FILES=20
# The flags of librocksdb-sys' build script on Linux, with the optimisation level of RocksDB's own Makefile.
FLAGS=(-O2 -fPIC -w -std=c++20 -ffunction-sections -fdata-sections -include cstdint
    -DNDEBUG -DLZ4=1 -DHAVE_ALIGNED_NEW -DHAVE_UINT128_EXTENSION -DOS_LINUX
    -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DROCKSDB_SCHED_GETCPU_PRESENT
    -DROCKSDB_AUXV_GETAUXVAL_PRESENT -DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT)
: "${CXX:=clang++}"

locked() { # CRATE: its version in Cargo.lock
    awk -v name="name = \"$1\"" '$0 == name { getline; gsub(/version = |"/, ""); print; exit }' Cargo.lock
}
binding=$(locked librocksdb-sys)
version=${binding#*+}
link=.rocksdb/$version
if ! grep -q "\"$link\"" .cargo/config.toml; then
    say "Cargo.lock has RocksDB $version: change ROCKSDB_LIB_DIR in .cargo/config.toml to \"$link\""
    exit 1
fi

key=$(printf '%s\n' "$binding" "$(locked lz4-sys)" "$UNIT_FILES" "${FLAGS[@]}" "$("$CXX" --version)" |
    sha256sum | cut -c 1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cortado/rocksdb-$version-$key
mkdir -p .rocksdb
if [ "$(readlink "$link" || true)" != "$cache" ]; then
    ln -sfn "$cache" "$link"
fi
if [ -f "$cache/librocksdb.a" ]; then
    exit 0
fi

say "compiling RocksDB $version, once: some minutes"
cargo fetch --locked
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
source=$(find "$registry" -maxdepth 2 -type d -name "librocksdb-sys-$binding" -print -quit)
lz4=$(find "$registry" -maxdepth 2 -type d -name "lz4-sys-$(locked lz4-sys)" -print -quit)
mkdir -p "$(dirname "$cache")"
build=$(mktemp -d "$cache.XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$build"' EXIT
includes=(-I"$source" -I"$source/rocksdb" -I"$source/rocksdb/include" -I"$lz4/liblz4/lib")

# The crate has its own build_version.cc.
grep '[^[:space:]]' "$source/rocksdb_lib_sources.txt" | grep -vx 'util/build_version.cc' |
    sed "s|^|$source/rocksdb/|" >"$build/sources"
echo "$source/build_version.cc" >>"$build/sources"
split -l "$UNIT_FILES" -d -a 3 "$build/sources" "$build/unit."
compile() { "$CXX" "${FLAGS[@]}" "${includes[@]}" -c "$1" -o "$2"; }
# Files that do not compile as one unit, with another compiler or a later version, are compiled one by one.
compile_unit() { # LIST
    sed 's|.*|#include "&"|' "$1" >"$1.cc"
    compile "$1.cc" "$1.o" 2>"$1.log" && return
    while read -r file; do
        compile "$file" "$1.$(basename "$(dirname "$file")").$(basename "$file").o"
    done <"$1"
}
running=0
for unit in "$build"/unit.???; do
    compile_unit "$unit" &
    running=$((running + 1))
    if [ "$running" -ge "$(nproc)" ]; then
        wait -n || { say "could not compile RocksDB"; exit 1; }
        running=$((running - 1))
    fi
done
while [ "$running" -gt 0 ]; do
    wait -n || { say "could not compile RocksDB"; exit 1; }
    running=$((running - 1))
done
ar crs "$build/librocksdb.a" "$build"/*.o
rm -f "$build"/unit.* "$build/sources"
# If two builds race, the last library replaces an equal one.
mkdir -p "$cache"
mv -f "$build/librocksdb.a" "$cache/librocksdb.a"
