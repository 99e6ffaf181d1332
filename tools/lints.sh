#!/usr/bin/env bash
# Prints a compiler flag that denies each lint of Cargo.toml's [workspace.lints], so that the list stands in one place:
#   tools/lints.sh code     the rustc and clippy lints
#   tools/lints.sh docs     the rustdoc lints
set -euo pipefail
cd "$(dirname "$0")/.."

awk -v what="$1" '
    /^\[/ { section = $0 }
    / = "(warn|deny)"$/ && section ~ /^\[workspace\.lints\./ {
        if (section == "[workspace.lints.rustdoc]") prefix = "rustdoc::"
        else if (section == "[workspace.lints.clippy]") prefix = "clippy::"
        else prefix = ""
        if ((prefix == "rustdoc::") == (what == "docs")) {
            printf "-D%s%s ", prefix, $1
            found = 1
        }
    }
    END { print ""; exit !found }' Cargo.toml
