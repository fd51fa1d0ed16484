#!/usr/bin/env bash
# Installs programs that some tests need besides Python: tmux (the terminal interface is played for real) by default,
# or those that the arguments name, such as chromium.
set -euo pipefail

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)

install() {
    command -v "$1" >/dev/null && return
    if command -v apt-get >/dev/null; then
        "${as_root[@]}" apt-get update --quiet
        "${as_root[@]}" apt-get install --yes --no-install-recommends "$1"
    elif command -v dnf >/dev/null; then
        "${as_root[@]}" dnf install --assumeyes "$1"
    elif command -v apk >/dev/null; then
        "${as_root[@]}" apk add "$1"
    elif command -v brew >/dev/null; then
        brew install "$1"
    else
        echo "Install $1 with the package manager of this system." >&2
        exit 1
    fi
}

for program in "${@:-tmux}"; do
    install "$program"
done
