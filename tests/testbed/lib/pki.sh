# shellcheck shell=bash
# Certificates and kubeconfigs of one cluster. They live as long as the cluster.

PKI=$STATE/pki
NODE=testbed
GATEWAY=10.244.0.1        # the node, on the pods' bridge
POD_SUBNET=10.244.0.0/24
POD_CIDR=10.244.0.0/16
SERVICE_CIDR=10.96.0.0/16
SERVICE_API=10.96.0.1

make_ca() { # file common-name
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
    -subj "/CN=$2" -keyout "$PKI/$1.key" -out "$PKI/$1.crt" 2>/dev/null
}

make_cert() { # file ca subject [alternative names]
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$3" \
    -keyout "$PKI/$1.key" -out "$PKI/$1.csr" 2>/dev/null
  printf 'extendedKeyUsage=clientAuth,serverAuth\n%s\n' "${4:+subjectAltName=$4}" >"$PKI/$1.ext"
  openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/$2.crt" -CAkey "$PKI/$2.key" -CAcreateserial \
    -days 365 -extfile "$PKI/$1.ext" -out "$PKI/$1.crt" 2>/dev/null
}

make_pki() {
  mkdir -p "$PKI"
  make_ca ca kubernetes-ca
  make_ca front front-proxy-ca
  make_cert apiserver ca /CN=kube-apiserver \
    "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1,IP:$GATEWAY,IP:$SERVICE_API"
  make_cert admin ca /O=system:masters/CN=admin
  make_cert kcm ca /CN=system:kube-controller-manager
  make_cert scheduler ca /CN=system:kube-scheduler
  make_cert kubelet ca "/O=system:nodes/CN=system:node:$NODE" "DNS:$NODE,IP:$GATEWAY,IP:127.0.0.1"
  make_cert proxy ca /CN=system:kube-proxy
  make_cert front-client front /CN=front-proxy-client
  openssl ecparam -genkey -name prime256v1 -noout -out "$PKI/sa.key"
  openssl ec -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
}

make_kubeconfig() { # file certificate address
  cat >"$1" <<END
apiVersion: v1
kind: Config
current-context: testbed-$NAME
clusters:
- name: testbed-$NAME
  cluster: {server: "https://$3", certificate-authority-data: $(base64 -w0 <"$PKI/ca.crt")}
users:
- name: $2
  user: {client-certificate-data: $(base64 -w0 <"$PKI/$2.crt"), client-key-data: $(base64 -w0 <"$PKI/$2.key")}
contexts:
- name: testbed-$NAME
  context: {cluster: testbed-$NAME, user: $2}
END
  chmod 600 "$1"
}

make_kubeconfigs() { # loopback-port
  local user
  for user in admin kcm scheduler kubelet proxy; do
    make_kubeconfig "$STATE/$user.conf" "$user" "$GATEWAY:6443"
  done
  make_kubeconfig "$STATE/host.conf" admin "127.0.0.1:$1"
}
