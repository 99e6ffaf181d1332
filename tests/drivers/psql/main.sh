#!/usr/bin/env bash
# psql: all sections. Each is a script, whose output must be that of PostgreSQL 15 (the file `.out` beside it). With
# UPDATE_GOLDENFILES=1 the output of the server becomes the expected one: only PostgreSQL may be that server.
set -uo pipefail
cd "$(dirname "$0")"

export PGCLIENTENCODING=UTF8 PAGER=cat
unset PGTZ PGDATESTYLE PSQLRC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

report() { # SECTION, with the differences on standard input
    if differences=$(cat) && [[ -z $differences ]]; then
        echo "ok $1"
    else
        failed=1
        echo "FAILED $1 $(tr -s '[:space:]' ' ' <<<"$differences" | cut -c -600)"
    fi
}

section() {
    (cd "$work" && psql -Xq -v VERBOSITY=default -f "$OLDPWD/$1.sql") >"$work/$1" 2>&1
    # The path of the script depends on where the clone is.
    sed -i -E "s#^psql:[^ ]*/([a-z_]+\.sql):#psql:\1:#" "$work/$1"
    if [[ -n ${UPDATE_GOLDENFILES:-} ]]; then cp "$work/$1" "$1.out"; fi
    diff -U0 "$1.out" "$work/$1" | tail -n +3 | grep -v "^@@" | head -n 12 | report "$1"
}

# Ctrl-C cancels the statement, and ends a psql that reads a script.
cancel() {
    psql -XAt -c "SELECT pg_sleep(20)" >"$work/cancel" 2>&1 &
    local psql=$!
    sleep 0.7
    kill -INT "$psql"
    wait "$psql"
    psql -XAt -v VERBOSITY=sqlstate -c "SET statement_timeout TO '200ms'" -c "SELECT pg_sleep(20)" >>"$work/cancel" 2>&1
    diff -U0 cancel.out "$work/cancel" | tail -n +3 | grep -v "^@@" | report cancel
}

echo "version $(psql --version | grep -oE '[0-9]+\.[0-9]+' | head -n 1)"
section connect
section types_text
echo "none types_binary psql reads and writes text only; COPY in binary is in the section copy"
for name in prepared batch transactions errors; do section "$name"; done
cancel
for name in copy cursors catalog; do section "$name"; done
exit "$failed"
