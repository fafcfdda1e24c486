# shellcheck shell=bash
# The cluster's life, seen from the host. The host reaches it by loopback only: with an address of its own, a stale
# kubeconfig would send requests out of the machine once the cluster is down.

# runs PID WORD: whether the process lives (a zombie does not) and has WORD on its command line.
runs() { grep -qzF -- "$2" "/proc/$1/cmdline" 2>/dev/null; }

# held_by COMMAND: the process of that name which has the state directory on its command line, whichever checkout started
# it. /proc is read because a bare machine has no pgrep, and `down` installs nothing.
held_by() {
  local files file
  mapfile -t files < <(grep -lszxF -- "$STATE" /proc/[0-9]*/cmdline)
  for file in "${files[@]}"; do
    if grep -qsx "$1" "${file%cmdline}comm"; then
      basename "${file%/cmdline}"
      return
    fi
  done
  return 1
}

outer() { held_by unshare; }

# The first process inside, as the host numbers it; fails when the cluster is not up.
first() { held_by testbed; }

inside() {
  local process
  need_root
  process=$(first) || die "cluster $NAME is not up: $SELF up"
  nsenter -t "$process" -m -n -p -r -- "$@"
}

forwarder() {
  local process
  process=$(cat "$STATE/forward.pid" 2>/dev/null) && runs "$process" TCP-LISTEN && echo "$process"
}

is_up() { is_ready && forwarder >/dev/null; }

is_ready() { [ "$(head -n 1 "$STATE/step" 2>/dev/null)" = ready ] && first >/dev/null; }

cluster_status() {
  if is_up; then
    echo "cluster $NAME is up; kubeconfig $STATE/host.conf"
  else
    echo "cluster $NAME is down"
    return 1
  fi
}

cluster_up() {
  local port
  need_root
  if is_up; then
    say "cluster $NAME is up already"
    return
  fi
  cluster_down
  need_cluster_packages
  build_programs
  mkdir -p "$STATE/log"
  port=$(claim_port)
  make_pki
  make_kubeconfigs "$port"
  echo "${APISERVER_EXTRA:-}" >"$STATE/apiserver.extra"
  echo "${KCM_EXTRA:-}" >"$STATE/kcm.extra"
  launch
  wait_ready
  forward "$port"
  say "cluster $NAME is up: export KUBECONFIG=$STATE/host.conf"
}

launch() {
  setsid unshare --net --mount --pid --fork --mount-proc --kill-child "$SELF" init "$STATE" \
    >"$STATE/log/init.log" 2>&1 </dev/null &
}

wait_ready() {
  local deadline=$((SECONDS + 120))
  wait_for 5 "the namespaces" outer || true
  until is_ready; do
    if ! outer >/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
      explain_start
      kill_cluster
      die "cluster $NAME did not start; its logs: $STATE/log"
    fi
    sleep 0.1
  done
}

# The end of the logs that tell why the start went no further.
explain_start() {
  local step=() log
  mapfile -t step <"$STATE/step" || true
  say "stopped while: ${step[0]:-preparing the namespaces}"
  for log in init "${step[1]:-}"; do
    [ -s "$STATE/log/$log.log" ] || continue
    say "the end of $log.log:"
    grep -v '^I[0-9]' "$STATE/log/$log.log" | tail -n 15 >&2 || true
  done
}

# The first port that is neither in use nor claimed by another cluster, which may still be starting.
claim_port() {
  local port
  (
    flock 9
    for port in ${TESTBED_PORT:-$(seq 16443 16499)}; do
      if ! grep -qsx "$port" "$CACHE"/clusters/*/port && ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "$port" | tee "$STATE/port"
        exit
      fi
    done
    die "no free loopback port: ${TESTBED_PORT:-16443 to 16499}"
  ) 9>"$CACHE/clusters/lock"
}

forward() { # port
  local process
  process=$(first)
  setsid socat "TCP-LISTEN:$1,bind=127.0.0.1,reuseaddr,fork" \
    "EXEC:nsenter -t $process -n socat STDIO TCP\\:127.0.0.1\\:6443" >"$STATE/log/forward.log" 2>&1 </dev/null &
  echo $! >"$STATE/forward.pid"
  wait_for 10 "the loopback port $1" "$(programs_dir controlplane)/kubectl" --kubeconfig "$STATE/host.conf" get --raw /readyz || {
    tail -n 3 "$STATE/log/forward.log" >&2
    kill_cluster
    die "cluster $NAME can not be reached"
  }
}

cluster_load() { # archive...
  local archive mark
  is_ready || die "cluster $NAME is not up: $SELF up"
  for archive in "$@"; do
    archive=$(realpath "$archive")
    mark=$(stat -c '%n %s %Y' "$archive")
    ! grep -qxF "$mark" "$STATE/loaded" 2>/dev/null || continue
    inside ctr --address "$CRI" --namespace k8s.io images import "$archive" >/dev/null
    echo "$mark" >>"$STATE/loaded"
  done
}

cluster_volume() { # name
  [[ ${1:-} =~ ^[a-z0-9-]+$ ]] || die "volume needs a name of lower-case letters, digits and dashes"
  is_ready || die "cluster $NAME is not up: $SELF up"
  mkdir -p "$STATE/volumes/$1"
  chown 65532:65532 "$STATE/volumes/$1"
  echo "$STATE/volumes/$1"
}

known_service() {
  case ${1:-} in
    etcd | apiserver | kcm | scheduler | containerd | kubelet | proxy | coredns) ;;
    *) die "no such service: ${1:-}; one of etcd apiserver kcm scheduler containerd kubelet proxy coredns" ;;
  esac
}

service_stop() { # service
  local process
  known_service "${1:-}"
  process=$(cat "$STATE/pid/$1")
  inside kill -9 "$process"
  wait_for 20 "the end of $1" eval "! inside kill -0 $process"
}

service_start() { # service
  known_service "${1:-}"
  inside "$SELF" daemon "$1"
}

kill_cluster() {
  local process
  if process=$(first); then
    kill -9 "$process" # unshare, outside, ignores SIGTERM; with the first process all others end
    wait_for 60 "the end of the cluster's processes" eval '! outer'
  fi
  remove_cgroups
}

cluster_down() {
  local process
  [ -d "$STATE" ] || outer >/dev/null || return 0
  need_root
  if process=$(forwarder); then
    kill -9 -- "-$process"
    wait_for 10 "the end of the forwarder" eval "! runs $process TCP-LISTEN"
  fi
  kill_cluster
  rm -rf --one-file-system "$STATE"
  say "cluster $NAME is down"
}

remove_cgroups() {
  find /sys/fs/cgroup -depth -type d \( -path "*/$CGROUP" -o -path "*/$CGROUP/*" \) -exec rmdir {} + 2>/dev/null || true
}
