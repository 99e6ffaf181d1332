#!/usr/bin/env bash
# Installs the build dependencies on Debian and Ubuntu; on other systems it lists what is missing. With the argument
# `test` it also installs what only the tests need, with `drivers`, `clients` or `differential` what these need. If
# nothing is missing, it exits at once.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }

missing=()
need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}
need g++ g++
need make make
need clang clang
need mold mold
# raft-rs compiles its messages with protoc. Our own are compiled in Rust.
need protoc protobuf-compiler
if [ "${1:-}" = test ]; then
    # The PostgreSQL clients of the tests.
    need psql postgresql-client
    for module in psycopg asyncpg; do
        /usr/bin/python3 -c "import $module" 2>/dev/null || python3 -c "import $module" 2>/dev/null ||
            missing+=("python3-$module")
    done
fi
case "${1:-}" in
drivers)
    need psql postgresql-client
    python3 -c "import ensurepip" 2>/dev/null || missing+=(python3-venv)
    need node nodejs
    need npm npm
    need go golang-go
    need javac default-jdk-headless
    need mvn maven
    ;;
differential)
    need psql postgresql-client
    [ -x /usr/lib/postgresql/15/bin/initdb ] || need initdb postgresql-15
    ;;
clients)
    need psql postgresql-client
    need sysbench sysbench
    # Debian ships pgbench with the server.
    need pgbench postgresql-15
    need go golang-go
    ;;
esac
# bindgen loads libclang at build time.
if [ -z "$(find /usr/lib /usr/lib64 /usr/local/lib -name 'libclang*.so*' -print -quit 2>/dev/null)" ]; then
    missing+=(libclang-dev)
fi

if [ ${#missing[@]} -gt 0 ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        say "please install: ${missing[*]} (this script knows apt-get only)"
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            say "please run as root: apt-get install ${missing[*]}"
            exit 1
        fi
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    # Installs usually fail because of a stale package list, so refresh it first.
    "${as_root[@]}" apt-get update -q >/dev/null || say "could not refresh the package lists, trying with the old ones"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null ||
        { say "could not install ${missing[*]}"; exit 1; }
fi

if ! command -v cargo >/dev/null 2>&1; then
    say "Rust is missing: install rustup (https://rustup.rs), then run this again"
    exit 1
fi
want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
have=$(rustc --version | cut -d ' ' -f 2)
if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" != "$want" ]; then
    say "Rust $want or newer is needed, this is $have: rustup update"
    exit 1
fi

"$(dirname "$0")/rocksdb.sh"
