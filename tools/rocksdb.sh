#!/usr/bin/env bash
# Compiles RocksDB once for all clones, profiles and target folders, and links it into this clone.
#
# librocksdb-sys compiles it again in each target folder and profile, file by file, in over twelve minutes on two cores.
# This script compiles the same sources, of the version in Cargo.lock, in two minutes, twenty files to a unit. The
# result goes to a cache folder whose name contains a hash of everything it depends on. `.rocksdb/VERSION` links to it,
# and `.cargo/config.toml` points librocksdb-sys there. If the library exists, the script exits at once. CXX names
# the compiler, CXXFLAGS further flags. `rocksdb.sh path` prints the cache folder.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'rocksdb: %s\n' "$*" >&2; }

if [ "$(uname -s)" != Linux ]; then
    say "Cortado runs on Linux only"
    exit 1
fi

UNIT_FILES=20
# The flags of librocksdb-sys' build script on x86_64 Linux, with the optimisation level of RocksDB's own Makefile.
FLAGS=(-O2 -fPIC -w -std=c++20 -ffunction-sections -fdata-sections -include cstdint
    -DNDEBUG -DLZ4=1 -DHAVE_ALIGNED_NEW -DHAVE_UINT128_EXTENSION -DOS_LINUX
    -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DROCKSDB_SCHED_GETCPU_PRESENT
    -DROCKSDB_AUXV_GETAUXVAL_PRESENT -DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT)
read -ra compiler <<<"${CXX:-clang++}"
read -ra further <<<"${CXXFLAGS:-}"

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

if ! built_with=$("${compiler[@]}" --version && "${compiler[@]}" -dumpmachine); then
    say "cannot run ${compiler[*]}: set CXX to a C++ compiler"
    exit 1
fi
key=$(printf '%s\n' "$binding" "$(locked lz4-sys)" "$UNIT_FILES" "${FLAGS[@]}" "${further[@]}" \
    "$built_with" | sha256sum | cut -c 1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cortado/rocksdb-$version-$key
mkdir -p .rocksdb "$(dirname "$cache")"
if [ "${1:-}" = path ]; then
    echo "$cache"
fi

# Links the library into this clone. The script's last step: until then an earlier link stays.
finish() {
    local linked
    linked=$(readlink "$link" || true)
    if [ "$linked" != "$cache" ]; then
        ln -sfn "$cache" "$link"
        # Cargo sees only the name of the link, which stays.
        if [ -n "$linked" ]; then
            say "another compiler or other flags: cargo will link the new library"
            cargo clean --locked --quiet -p librocksdb-sys
            cargo clean --locked --quiet -p librocksdb-sys --release
        fi
    fi
    exit 0
}

# One build at a time. The others wait for it and use its result.
if [ ! -f "$cache/librocksdb.a" ]; then
    exec 9>"$cache.lock"
    flock --nonblock 9 || { say "waiting for another build"; flock 9; }
fi
if [ -f "$cache/librocksdb.a" ]; then
    finish
fi
# What a build that was killed left behind.
rm -rf "$cache".build-*

say "compiling RocksDB $version, once: some minutes"
cargo fetch --locked
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
source=$(find "$registry" -maxdepth 2 -type d -name "librocksdb-sys-$binding" -print -quit)
lz4=$(find "$registry" -maxdepth 2 -type d -name "lz4-sys-$(locked lz4-sys)" -print -quit)
if [ -z "$source" ] || [ -z "$lz4" ]; then
    say "the sources of librocksdb-sys and lz4-sys are not in $registry"
    exit 1
fi
build=$(mktemp -d "$cache.build-XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$build"' EXIT
includes=(-I"$source" -I"$source/rocksdb" -I"$source/rocksdb/include" -I"$lz4/liblz4/lib")

# The crate has its own build_version.cc.
grep '[^[:space:]]' "$source/rocksdb_lib_sources.txt" | grep -vx 'util/build_version.cc' |
    while read -r file; do echo "$source/rocksdb/$file"; done >"$build/sources"
echo "$source/build_version.cc" >>"$build/sources"
split -l "$UNIT_FILES" -d -a 3 "$build/sources" "$build/unit."
compile() { "${compiler[@]}" "${FLAGS[@]}" "${further[@]}" "${includes[@]}" -c "$1" -o "$2"; }
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
    # A daemon that the compiler starts must not keep the lock.
    compile_unit "$unit" 9>&- &
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
mkdir -p "$cache"
mv -f "$build/librocksdb.a" "$cache/librocksdb.a"
finish
