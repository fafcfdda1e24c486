# shellcheck shell=bash
# The programs that real users have and no package brings: gobackup, MongoDB's and InfluxDB's clients, from sources that lie
# beside the checkout, and servers that answer these clients, from Go modules. Each is kept under a name made of its source
# and of how it is built, so that a second run builds nothing.

PEERS=${BACKUP_PEERS:-$HERE/../../../shared/peers} # where the sources are
FERRETDB=1.24.2                                    # speaks MongoDB's protocol
INFLUXDB=2.7.12

# have_peers: whether the sources are here.
have_peers() { [ -e "$PEERS/gobackup-3.1.1.tar.zst" ]; }

# The archive that NAME is built from; none of what is a Go module.
peer_source() { # name
  case $1 in
    gobackup) echo "$PEERS/gobackup-3.1.1.tar.zst" ;;
    mongo-tools | influx) echo "$PEERS/${1/%influx/influx-cli}.tar.zst" ;;
    ferretdb | influxdb) ;;
    *) die "no such peer: $1; one of gobackup mongo-tools influx ferretdb influxdb" ;;
  esac
}

peer_dir() { # name
  local source
  source=$(peer_source "$1") || exit 1
  [ -z "$source" ] || [ -r "$source" ] || die "$1 is built from $source, which is not there: BACKUP_PEERS names the directory of the sources"
  echo "$CACHE/peers/$1-$({
    [ -z "$source" ] || sha256sum <"$source"
    declare -f "build_${1//-/_}" peer_go
    echo "$FERRETDB $INFLUXDB $(uname -m)"
  } | digest)"
}

# find_peer NAME: makes it once and prints its directory.
find_peer() {
  local directory
  directory=$(peer_dir "${1:-}") || exit 1
  cached "$directory" build_peer "$1" >&2
  echo "$directory"
}

build_peer() { # name directory
  local work source
  find_go
  say "building $1 (once; kept in $CACHE/peers)"
  work=$(mktemp -d)
  source=$(peer_source "$1")
  mkdir -p "$2"
  if [ -n "$source" ]; then
    need_packages zstd:zstd
    tar -I zstd -xf "$source" -C "$work"
  fi
  quiet "build_${1//-/_}" "$work" "$2" || die "could not build $1"
  # What Go's modules leave can't be written.
  chmod -R u+w "$work"
  rm -r "$work"
}

# Linked statically where C is not needed, so that the program runs in every image.
peer_go() { GOTOOLCHAIN=local GOFLAGS=-buildvcs=false CGO_ENABLED="${CGO:-0}" "$GO" "$@"; }

build_gobackup() { # work directory
  (cd "$1/gobackup" && peer_go build -trimpath -ldflags "-s -w -X main.version=3.1.1" -o "$2/gobackup" .)
}

build_mongo_tools() { # work directory
  local name
  for name in mongodump mongorestore; do
    (cd "$1" && peer_go build -trimpath -ldflags "-s -w" -o "$2/$name" "./$name/main") || return
  done
}

build_influx() { # work directory
  (cd "$1/influx-cli" && peer_go build -trimpath -ldflags "-s -w" -o "$2/influx" ./cmd/influx)
}

# peer_module MODULE@VERSION DIRECTORY: a copy of a module that can be written to.
peer_module() {
  local at
  at=$(cd "$(dirname "$2")" && peer_go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') && [ -n "$at" ] || return
  cp -r "$at" "$2" && chmod -R u+w "$2"
}

build_ferretdb() { # work directory
  local name
  peer_module "github.com/FerretDB/FerretDB@v$FERRETDB" "$1/ferretdb" || return
  # Its own build makes these; a server without them does not start.
  for name in commit branch package; do echo unknown >"$1/ferretdb/build/version/$name.txt"; done
  echo "v$FERRETDB" >"$1/ferretdb/build/version/version.txt"
  (cd "$1/ferretdb" && peer_go build -trimpath -ldflags "-s -w" -tags ferretdb_no_postgresql -o "$2/ferretdb" ./cmd/ferretdb)
}

# Part of it is a library in Rust: a pkg-config of InfluxData's builds that, with lints that were once none.
build_influxdb() { # work directory
  local at=$1/influxdb
  peer_module "github.com/influxdata/influxdb/v2@v$INFLUXDB" "$at" || return
  mkdir "$1/bin" "$1/cargo"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nexec "$@" --cap-lints warn\n' >"$1/bin/lenient"
  chmod +x "$1/bin/lenient"
  (cd "$at" && GOBIN=$1/bin peer_go install github.com/influxdata/pkg-config) || return
  (
    cd "$at" && unset CARGO_TARGET_DIR && export PKG_CONFIG=$1/bin/pkg-config GOCACHE=$1/go-build
    export RUSTC_WRAPPER=$1/bin/lenient RUSTUP_TOOLCHAIN=${RUSTUP_TOOLCHAIN:-stable}
    CGO=1 peer_go build -trimpath -ldflags "-s -w" -tags sqlite_foreign_keys,sqlite_json -o "$2/influxd" ./cmd/influxd
  )
}
