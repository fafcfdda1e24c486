#!/usr/bin/env python3
"""`kubectl backup list` of 10,000 objects beside curl of the same representation and kubectl get,
and the CPU its start takes.

Needs a cluster that has the resource definitions, named by KUBECONFIG. All clients use one service
account: an administrator's certificate is exempt from flow control. Everything it makes there is
in one namespace, which is deleted at the end.

  list.py --plugin kubectl-backup --kubectl kubectl [--count 10000] [--rounds 5] [--json FILE]
"""

import argparse
import base64
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

NAMESPACE = "bench-list"
RESOURCE = "mysqlbackups.batch.isekiro.com"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CHUNK = 500


class Cluster:
    """The cluster, its administrator, and the one service account that is measured."""

    def __init__(self, kubectl, directory):
        self.kubectl, self.directory = kubectl, directory
        view = json.loads(self.run("config", "view", "--raw", "--minify", "-o", "json"))
        cluster = view["clusters"][0]["cluster"]
        self.server = cluster["server"]
        self.ca = os.path.join(directory, "ca.crt")
        if "certificate-authority-data" in cluster:
            with open(self.ca, "wb") as file:
                file.write(base64.b64decode(cluster["certificate-authority-data"]))
        else:
            self.ca = cluster["certificate-authority"]

    def run(self, *words, **more):
        done = subprocess.run([self.kubectl, *words], check=True, capture_output=True, text=True, **more)
        return done.stdout

    def account(self):
        self.run("delete", "namespace", NAMESPACE, "--ignore-not-found")
        self.run("create", "namespace", NAMESPACE)
        self.run("-n", NAMESPACE, "create", "serviceaccount", "reader")
        self.run("-n", NAMESPACE, "create", "role", "reader", "--verb=get,list", "--resource=" + RESOURCE)
        self.run("-n", NAMESPACE, "create", "rolebinding", "reader", "--role=reader",
                 "--serviceaccount=" + NAMESPACE + ":reader")
        self.token = self.run("-n", NAMESPACE, "create", "token", "reader", "--duration=2h").strip()
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {"server": self.server, "certificate-authority": self.ca}}],
            "users": [{"name": "bench", "user": {"token": self.token}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench", "namespace": NAMESPACE}}],
        }
        self.config = os.path.join(self.directory, "config")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        # Not in an argument, where every process of the machine reads it.
        self.headers = os.path.join(self.directory, "headers")
        with open(self.headers, "w", encoding="utf-8") as file:
            file.write(f'header = "Authorization: Bearer {self.token}"\nheader = "Accept: {TABLE}"\n')

    def fill(self, count):
        items = [{
            "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": {"name": f"b{n:05}", "labels": {"team": f"t{n % 7}"}},
            "spec": {"schedule": "0 2 * * *", "suspend": True,
                     "source": {"host": "db", "credentialsSecretRef": {"name": "db"}},
                     "destination": {"s3": {"bucket": "backups"}}},
        } for n in range(count)]
        for start in range(0, count, 1000):
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items[start:start + 1000]})
            self.run("-n", NAMESPACE, "create", "--validate=false", "-f", "-", input=text)

    def done(self):
        self.run("delete", "namespace", NAMESPACE, "--wait=false")

    def path(self, token):
        query = {"includeObject": "None", "limit": str(CHUNK)}
        if token:
            query["continue"] = token
        return f"{self.server}/apis/batch.isekiro.com/v1/namespaces/{NAMESPACE}/mysqlbackups?" + urllib.parse.urlencode(query)

    def curl(self, urls):
        return ["curl", "--silent", "--fail", "--compressed", "--cacert", self.ca, "--config", self.headers, *urls]

    def chunks(self):
        """The URLs of all chunks, as the plugin asks for them."""
        urls, token = [], ""
        while True:
            urls.append(self.path(token))
            part = json.loads(subprocess.run(self.curl(urls[-1:]), check=True, capture_output=True).stdout)
            token = part["metadata"].get("continue", "")
            if not token:
                return urls


def wall(words, env):
    start = time.monotonic()
    done = subprocess.run(words, check=True, capture_output=True, env=env)
    return time.monotonic() - start, done.stdout


def cpu(words, env):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def spread(values):
    return [round(min(values), 4), round(max(values), 4)]


def row(name, ours, peer, peer_name, limit, unit):
    mine = statistics.median(ours)
    other = statistics.median(peer) if isinstance(peer, list) else peer
    return {"row": name, "ours": round(mine, 4), "peer": round(other, 4), "peer_name": peer_name,
            "limit": limit, "ratio": round(mine / other, 3), "unit": unit, "spread": spread(ours)}


def measure(args, cluster):
    env = {**os.environ, "KUBECONFIG": cluster.config}
    plugin = [args.plugin, "list", "mysqlbackup"]
    kubectl = [args.kubectl, "get", RESOURCE]
    ours, curl, get = [], [], []
    # In turns, so that what else the machine does falls on all; the first round warms.
    for number in range(args.rounds + 1):
        curl_words = cluster.curl(cluster.chunks())
        times = [wall(plugin, env), wall(curl_words, env), wall(kubectl, env)]
        lines = len(times[0][1].splitlines()) - 1
        if lines != args.count:
            sys.exit(f"list gave {lines} lines instead of {args.count}")
        if number:
            for to, (seconds, _) in zip((ours, curl, get), times):
                to.append(seconds)
    start = [cpu([args.plugin, "version", "--client"], env) for _ in range(20)]
    what = f"list of {args.count:,} objects"
    return [
        row(what, ours, curl, "curl of the same Tables, in the same chunks", 1.3, "s"),
        row(what, ours, get, "kubectl get", 1.0, "s"),
        row("start-up, CPU", start, 10.0, "10 ms", 1.0, "ms"),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin", default="kubectl-backup")
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        cluster = Cluster(args.kubectl, directory)
        try:
            cluster.account()
            cluster.fill(args.count)
            rows = measure(args, cluster)
        finally:
            cluster.done()
    for one in rows:
        verdict = "ok" if one["ratio"] <= one["limit"] else "MISSED"
        print(f"{one['row']}: {one['ours']} {one['unit']}, {one['peer_name']}: {one['peer']} {one['unit']}, "
              f"ratio {one['ratio']} (at most {one['limit']}) {verdict}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    sys.exit(any(one["ratio"] > one["limit"] for one in rows))


if __name__ == "__main__":
    main()
