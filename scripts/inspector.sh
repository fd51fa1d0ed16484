#!/bin/sh
# Installs the MCP inspector, pinned, with a node that is new enough for it, into a folder:
#   scripts/inspector.sh [FOLDER]        default: .cache/inspector
# and prints the command that runs it. Needs npm.
set -eu

INSPECTOR=2.12.0
NODE=22.23.3

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
folder=${1:-$root/.cache/inspector}
stamp=$folder/installed-$INSPECTOR-$NODE

if [ ! -e "$stamp" ]; then
    mkdir -p "$folder"
    npm install --prefix "$folder" --no-audit --no-fund --no-package-lock --loglevel=error \
        "node@$NODE" "@modelcontextprotocol/inspector@$INSPECTOR" >&2
    touch "$stamp"
fi
echo "$folder/node_modules/.bin/node $folder/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
