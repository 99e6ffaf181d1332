#!/usr/bin/env bash
# Runs one test binary for cargo, within a time limit; tools/test.sh makes it cargo's runner.
#
# The tests of whole clusters wait more than they compute. In a run of all tests they start first, in the background,
# and the others yield the processor to them. TEST_ASIDE is a folder for their pid, output and exit code. With
# TEST_SUDO a binary runs as root.
set -euo pipefail

run=(timeout --foreground --kill-after=10 "$TEST_LIMIT" "$@")
if [[ -n ${TEST_SUDO:-} ]]; then
    exec sudo -n -E "${run[@]}"
elif [[ -z ${TEST_ASIDE:-} ]]; then
    exec "${run[@]}"
elif [[ $CARGO_PKG_NAME != cortado || $1 != */cluster-* ]]; then
    exec nice "${run[@]}"
fi
{
    status=0
    "${run[@]}" >"$TEST_ASIDE/output" 2>&1 </dev/null || status=$?
    echo "$status" >"$TEST_ASIDE/status"
} &
echo $! >"$TEST_ASIDE/pid"
echo "$1 runs beside the next tests"
