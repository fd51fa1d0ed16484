#!/usr/bin/env bash
# What the long proofs need besides Python: tmux, in which the terminal interface is played for real.
set -euo pipefail

command -v tmux >/dev/null && exit 0
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
if command -v apt-get >/dev/null; then
    "${as_root[@]}" apt-get update --quiet
    "${as_root[@]}" apt-get install --yes --no-install-recommends tmux
elif command -v dnf >/dev/null; then
    "${as_root[@]}" dnf install --assumeyes tmux
elif command -v apk >/dev/null; then
    "${as_root[@]}" apk add tmux
elif command -v brew >/dev/null; then
    brew install tmux
else
    echo "Install tmux with the package manager of this system." >&2
    exit 1
fi
