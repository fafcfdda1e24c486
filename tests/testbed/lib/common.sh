# shellcheck shell=bash
# What every part uses: where things are kept, how they are said, and a cache that never holds half of anything.

CACHE=${KUBECTL_BACKUP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubectl-backup}
NAME=${TESTBED_NAME:-test}
STATE=$CACHE/clusters/$NAME
mkdir -p "$CACHE"

say() { printf 'testbed: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}

[[ $NAME =~ ^[a-z0-9-]{1,20}$ ]] || die "TESTBED_NAME=$NAME: use up to 20 lower-case letters, digits and dashes"

need_root() {
  [ "$(id -u)" -eq 0 ] || die "root is needed for namespaces and mounts: run it as root, for instance by sudo -E"
}

digest() { sha256sum | cut -c1-16; }

# cached TARGET COMMAND ARG...: make TARGET once. COMMAND gets a temporary path as its last argument, which becomes
# TARGET only when COMMAND succeeded, so an interrupted build leaves nothing that a later one believes.
cached() {
  local target=$1
  shift
  [ ! -e "$target" ] || return 0
  mkdir -p "$(dirname "$target")"
  (
    flock 9
    [ ! -e "$target" ] || exit 0
    rm -rf "$target".partial.*
    "$@" "$target.partial.$$"
    mv -T "$target.partial.$$" "$target"
  ) 9>"$target.lock"
}

# wait_for SECONDS WHAT COMMAND ARG...: until COMMAND succeeds.
wait_for() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      say "gave up waiting for $what"
      return 1
    fi
    sleep 0.1
  done
}

# cover DIRECTORY...: in a mount namespace of our own, let writes to the host's directories go to memory, so that what
# programs put there without being asked is gone with the namespace. /run is new, with the cache at /run/testbed.
cover() {
  local directory layer
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/lock /run/testbed
  mount --bind "$CACHE" /run/testbed
  for directory in "$@"; do
    layer=/run/cover$directory
    mkdir -p "$layer"/{upper,work}
    mount -t overlay overlay -o "lowerdir=$directory,upperdir=$layer/upper,workdir=$layer/work" "$directory"
    [[ $CACHE/ != "$directory"/* ]] || mount --bind /run/testbed "$CACHE"
  done
}
