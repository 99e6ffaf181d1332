#!/usr/bin/env bash
# Prints a compiler flag that denies each lint of Cargo.toml's [workspace.lints], so that the list stands in one place:
#   tools/lints.sh code     the rustc and clippy lints
#   tools/lints.sh docs     the rustdoc lints
set -euo pipefail
cd "$(dirname "$0")/.."

awk -v what="$1" '
    /^\[/ { section = $0; next }
    section !~ /^\[workspace\.lints\./ || /^ *(#|$)/ { next }
    # A level, or a table such as { level = "warn", priority = 1 }.
    !/"(allow|warn|deny|forbid)"/ { print "lints.sh: not understood: " $0 >"/dev/stderr"; failed = 1; exit }
    /"(warn|deny|forbid)"/ {
        tool = section
        gsub(/^\[workspace\.lints\.|\]$/, "", tool)
        if ((tool == "rustdoc") == (what == "docs")) {
            printf "-D%s%s ", tool == "rust" ? "" : tool "::", $1
            found = 1
        }
    }
    END { print ""; exit failed || !found }' Cargo.toml
