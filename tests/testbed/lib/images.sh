# shellcheck shell=bash
# Images without a registry and without a docker daemon: a Debian base made from its packages, and ordinary Dockerfiles
# built on it by buildah. Archives are kept under a name made of their content, so the second build costs nothing.

SUITE=bookworm
BASE_IMAGE=docker.io/library/debian:$SUITE-slim
MONTH=$(date -u +%Y-%m) # a new base each month, for its security updates
MARIADB_IMAGE=testbed-mariadb:10.11
SERVERS_IMAGE=testbed-servers:$SUITE
GOBACKUP_IMAGE=testbed-gobackup:$SUITE
GOBACKUP_PEER_IMAGE=testbed-gobackup:3.1.1 # the same with gobackup itself, where it can be built
CLIENT_IMAGE=testbed-client:11.8
MONGODB_PEER_IMAGE=testbed-mongodb:$SUITE # a server and its own clients, where they can be built
INFLUXDB_PEER_IMAGE=testbed-influxdb:$SUITE
PYTHON=3.11 # of the suite
MOTO='moto[s3]==5.*' # the S3 server, from PyPI

# build_test_images [NAME...]: prints the path of each archive; without a name, of all.
build_test_images() {
  local name
  [ $# -gt 0 ] || set -- mariadb servers gobackup client
  for name in "$@"; do
    case $name in
      mariadb) build_image "$MARIADB_IMAGE" "$HERE/images/mariadb.Dockerfile" "$HERE/images/mariadb" ;;
      servers) build_servers_image ;;
      gobackup) build_image "$GOBACKUP_IMAGE" "$HERE/images/gobackup.Dockerfile" "$HERE/images/gobackup" ;;
      gobackup-peer) build_image "$GOBACKUP_PEER_IMAGE" "$HERE/images/gobackup.Dockerfile" "$(find_peer gobackup)" ;;
      client) build_image "$CLIENT_IMAGE" "$HERE/images/client.Dockerfile" "$HERE/images/client" ;;
      mongodb-peer) build_peer_image "$MONGODB_PEER_IMAGE" ferretdb mongo-tools ;;
      influxdb-peer) build_peer_image "$INFLUXDB_PEER_IMAGE" influxdb influx ;;
      *) die "no such image: $name; one of mariadb servers gobackup client gobackup-peer mongodb-peer influxdb-peer" ;;
    esac
  done
}

build_servers_image() {
  local context
  context=$CACHE/images/servers-$(cat "$HERE/images/servers/start" <(echo "$PYTHON $MOTO $(uname -m)") | digest)
  cached "$context" make_servers_context
  build_image "$SERVERS_IMAGE" "$HERE/images/servers.Dockerfile" "$context"
}

# build_peer_image TAG PEER...: the programs of these peers in one image.
build_peer_image() {
  local context peer directories=()
  for peer in "${@:2}"; do
    directories+=("$(find_peer "$peer")") || return
  done
  context=$CACHE/images/peer-$(echo "${directories[@]}" | digest)
  cached "$context" make_peer_context "${directories[@]}"
  build_image "$1" "$HERE/images/peer.Dockerfile" "$context"
}

make_peer_context() { # directory... context
  local directory
  mkdir -p "${*: -1}"
  for directory in "${@:1:$#-1}"; do
    cp "$directory"/* "${*: -1}/" || return
  done
}

make_servers_context() { # directory
  need_packages python3:python3
  python3 -m pip --version >/dev/null 2>&1 || need_packages /usr/lib/python3/dist-packages/pip:python3-pip
  say "taking moto from PyPI"
  mkdir -p "$1"
  cp "$HERE/images/servers/start" "$1/"
  # For the image's Python, whatever the host has.
  PIP_ROOT_USER_ACTION=ignore quiet python3 -m pip install --quiet --no-compile --target "$1/moto" --python-version "$PYTHON" \
    --only-binary=:all: --platform "manylinux2014_$(uname -m)" "$MOTO" flask flask-cors
}

# In a mount namespace with covered directories: buildah leaves locks and caches about.
buildah_here() { unshare --mount "$SELF" buildah "$@"; }

run_buildah() { # called by buildah_here alone
  local resolver
  resolver=$(cat /etc/resolv.conf)
  cover /etc /opt /var/lib
  rm -f /etc/resolv.conf # often a link into /run
  echo "$resolver" >/etc/resolv.conf
  BUILDAH_ISOLATION=chroot CONTAINERS_REGISTRIES_CONF=$CACHE/buildah/registries.conf \
    buildah --root "$CACHE/buildah/$SUITE-$MONTH" --runroot /run/buildah --storage-driver "$(storage_driver)" "$@"
}

storage_driver() { if [ "$(stat -f -c %T "$CACHE")" = overlayfs ]; then echo vfs; else echo overlay; fi; }

need_image_tools() {
  need_root
  need_packages buildah:buildah mmdebstrap:mmdebstrap \
    /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
  mkdir -p "$CACHE/buildah"
  echo 'unqualified-search-registries = ["docker.io"]' >"$CACHE/buildah/registries.conf"
  echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$CACHE/buildah/policy.json"
}

# build_image TAG DOCKERFILE CONTEXT: prints the path of the docker archive.
build_image() {
  local tag=${1:?tag} dockerfile=${2:?Dockerfile} context=${3:?context directory} key stem
  key=$({
    echo "$tag $SUITE-$MONTH $(uname -m)"
    cat "$dockerfile"
    tar -C "$context" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - .
  } | digest)
  stem=$CACHE/images/$(tr '/:' '--' <<<"$tag")
  if [ ! -e "$stem-$key.tar" ]; then
    need_image_tools
    make_base_image
    cached "$stem-$key.tar" make_archive "$tag" "$dockerfile" "$context"
    find "$CACHE/images" -name "$(basename "$stem")-*.tar*" ! -name "*-$key.tar*" -delete # what it replaces
  fi
  echo "$stem-$key.tar"
}

make_archive() { # tag dockerfile context archive
  say "building the image $1"
  # Packages of the machine's own mirror: it may be all that can be reached.
  quiet buildah_here bud --signature-policy "$CACHE/buildah/policy.json" --pull-never --layers \
    --build-arg MYSQL_SOURCE=mirror -t "$1" -f "$2" "$3"
  quiet buildah_here push --signature-policy "$CACHE/buildah/policy.json" "$1" "docker-archive:$4:$1"
}

make_base_image() {
  local context=$CACHE/images/base-$SUITE-$MONTH
  cached "$context" make_base
  if ! buildah_here inspect --type image "$BASE_IMAGE" >/dev/null 2>&1; then
    printf 'FROM scratch\nADD base.tar /\nCMD ["bash"]\n' >"$context/Dockerfile"
    quiet buildah_here bud --signature-policy "$CACHE/buildah/policy.json" -t "$BASE_IMAGE" "$context"
  fi
}

make_base() { # directory
  say "making the Debian base image (once a month)"
  mkdir -p "$1"
  # As in the public slim image: no manuals, no translations.
  quiet mmdebstrap --variant=minbase \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    "$SUITE" "$1/base.tar"
}

# Run a talkative command; show what it said only if it failed.
quiet() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || status=$?
  [ "$status" -eq 0 ] || tail -n 30 "$log" >&2
  rm -f "$log"
  return "$status"
}
