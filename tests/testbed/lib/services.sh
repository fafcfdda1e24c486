# shellcheck shell=bash
# What runs inside the cluster's namespaces. `run_init` is process 1 there: killing it ends all of it.

BED=/run/testbed/clusters/$NAME # the state directory as seen inside: short, since socket paths end at 108 bytes
CGROUP=kubectl-backup-$NAME
CRI=$BED/containerd.sock

run_init() {
  isolate_files
  isolate_network
  start_control_plane
  start_node
  step "waiting for the node" kubelet
  kubectl_admin wait --for=create "node/$NODE" --timeout=60s
  kubectl_admin wait --for=condition=Ready "node/$NODE" --timeout=60s
  step ready
  while sleep 3600; do :; done # bash as process 1 reaps what is orphaned
}

isolate_files() {
  cover /etc /opt /var/lib
  mount -t tmpfs tmpfs /var/log
  mkdir -p "$BED"/{log,pid,etcd,kubelet,cni,containerd}
}

isolate_network() {
  ip link set lo up
  ip link add cni0 type bridge
  ip address add "$GATEWAY/24" dev cni0
  ip link set cni0 up
  ip route add "$SERVICE_CIDR" dev cni0 # a Service without endpoints stays on this bridge
  sysctl -qw net.ipv4.ip_forward=1
}

start_control_plane() {
  step "starting the API server" apiserver
  service etcd
  service containerd
  service apiserver
  wait_for 60 "the API server" kubectl_admin get --raw /readyz
  service kcm
  service scheduler
  service coredns
}

start_node() {
  step "starting the container runtime" containerd
  wait_for 30 "the container runtime" ctr_inside version
  ctr_inside images import "$(pause_archive)"
  step "starting the node" kubelet
  service kubelet
  service proxy
}

# step TEXT [SERVICE]: where the start stands, and whose log explains it when it goes no further.
step() { printf '%s\n' "$1" "${2:-}" >"$BED/step"; }

kubectl_admin() { "$(programs_dir controlplane)/kubectl" --kubeconfig "$BED/admin.conf" "$@"; }
ctr_inside() { ctr --address "$CRI" --namespace k8s.io "$@"; }

service() { "service_$1"; }

daemon() { # name command...
  local name=$1
  shift
  "$@" >>"$BED/log/$name.log" 2>&1 </dev/null &
  echo $! >"$BED/pid/$name"
}

service_etcd() {
  daemon etcd "$(programs_dir etcd)/etcd" --data-dir "$BED/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
}

service_apiserver() {
  local pki=$BED/pki extra
  read -ra extra <"$BED/apiserver.extra"
  daemon apiserver "$(programs_dir controlplane)/kube-apiserver" \
    --etcd-servers=http://127.0.0.1:2379 \
    --secure-port=6443 --bind-address=0.0.0.0 --advertise-address="$GATEWAY" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --client-ca-file="$pki/ca.crt" --authorization-mode=Node,RBAC \
    --service-cluster-ip-range="$SERVICE_CIDR" \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
    --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" \
    --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --requestheader-client-ca-file="$pki/front.crt" \
    --proxy-client-cert-file="$pki/front-client.crt" --proxy-client-key-file="$pki/front-client.key" \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-allowed-names=front-proxy-client \
    --enable-admission-plugins=NodeRestriction --allow-privileged=true "${extra[@]}"
}

service_kcm() {
  local pki=$BED/pki extra
  read -ra extra <"$BED/kcm.extra"
  daemon kcm "$(programs_dir controlplane)/kube-controller-manager" --kubeconfig="$BED/kcm.conf" \
    --use-service-account-credentials --service-account-private-key-file="$pki/sa.key" \
    --root-ca-file="$pki/ca.crt" --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
    --leader-elect=false --allocate-node-cidrs --cluster-cidr="$POD_CIDR" --bind-address=127.0.0.1 "${extra[@]}"
}

service_scheduler() {
  daemon scheduler "$(programs_dir controlplane)/kube-scheduler" --kubeconfig="$BED/scheduler.conf" \
    --leader-elect=false --bind-address=127.0.0.1
}

service_containerd() {
  local snapshotter=overlayfs
  [ "$(stat -f -c %T "$BED/containerd")" != overlayfs ] || snapshotter=native # overlay does not stack on overlay
  cat >"$BED/containerd.toml" <<END
version = 2
root = "$BED/containerd"
state = "/run/containerd"
[grpc]
  address = "$CRI"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  # Where the host lacks CAP_SYS_RESOURCE, runc dies without this: "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$BED/cni"
END
  cat >"$BED/cni/10-bridge.conflist" <<END
{"cniVersion": "0.4.0", "name": "testbed", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/run/cni",
            "ranges": [[{"subnet": "$POD_SUBNET", "gateway": "$GATEWAY"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
  daemon containerd containerd --config "$BED/containerd.toml"
}

service_kubelet() {
  make_cgroups
  cat >"$BED/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $BED/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $BED/pki/kubelet.crt
tlsPrivateKeyFile: $BED/pki/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
containerRuntimeEndpoint: unix://$CRI
clusterDNS: [$GATEWAY]
clusterDomain: cluster.local
resolvConf: ""
evictionHard: {memory.available: "50Mi", nodefs.available: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
maxPods: 200
END
  daemon kubelet "$(programs_dir controlplane)/kubelet" --config="$BED/kubelet.yaml" --kubeconfig="$BED/kubelet.conf" \
    --hostname-override="$NODE" --node-ip="$GATEWAY" --root-dir="$BED/kubelet"
}

# A root of its own: a kubelet kills what it does not know under its root, another cluster's pods included.
make_cgroups() {
  local controller
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mkdir -p "/sys/fs/cgroup/$CGROUP"
  else
    for controller in /sys/fs/cgroup/*/; do mkdir -p "$controller$CGROUP"; done
  fi
}

service_proxy() {
  cat >"$BED/proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $BED/proxy.conf}
mode: iptables
hostnameOverride: $NODE
oomScoreAdj: 0
clusterCIDR: $POD_CIDR
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
END
  daemon proxy "$(programs_dir controlplane)/kube-proxy" --config="$BED/proxy.yaml"
}

# Names outside the cluster do not exist: nothing is asked of another server.
service_coredns() {
  cat >"$BED/Corefile" <<END
cluster.local in-addr.arpa ip6.arpa {
  bind $GATEWAY
  errors
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig $BED/admin.conf
    pods verified
  }
  cache 5
}
. {
  bind $GATEWAY
  template ANY ANY { rcode NXDOMAIN }
}
END
  daemon coredns "$(programs_dir coredns)/coredns" -conf "$BED/Corefile"
}
