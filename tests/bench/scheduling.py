#!/usr/bin/env python3
"""The operator beside its peers: many objects due in one minute, on a real API server, in one run on one machine.

usage: scheduling.py [--json FILE] [--objects N] [--few N] [--rounds N] [--only NAME,...]

Each contestant gets a fresh etcd and API server (tests/testbed) with nothing else at work: no kubelet and no Job
controller, so that Jobs stand still until this script ends some of them as the Job controller would. All contestants
use one service account, to which the FlowSchema of deploy/operator applies, and speak to the API server directly.

  ours               backup-operator
  bare               a client that only creates the same Jobs, 64 at a time
  cronjob            kube-controller-manager with the CronJob controller alone, as it is
  cronjob lifted     with --kube-api-qps=5000 --kube-api-burst=5000 --concurrent-cron-job-syncs=100
  tutorial           the tutorial's controller on controller-runtime, 20 requests a second, one worker
  tutorial lifted    without a limit, 100 workers

Contestants that their own limiter holds to a few Jobs a second get --few objects. The table says what is measured;
--json writes it as a list of {row, ours, peer, peer_name, limit, ratio, unit, spread, met}.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
TESTBED = TOP / "tests/testbed/testbed"
LIFTED = ["--kube-api-qps=5000", "--kube-api-burst=5000"]
COUNTED = ("jobs", "cronjobs", "tasks", "mysqlbackups", "events", "pods")
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "backup", "image": "none.invalid/none", "args": ["dump"]}]}}


def say(*words):
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


def run(*command, **more):
    return subprocess.run([str(c) for c in command], check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def make(variable):
    return run("make", "-s", "-C", TOP, f"print-{variable}").strip()


class Programs:
    """Copies of all programs under names of their own, by which their processes are known."""

    def __init__(self, root):
        operator = pathlib.Path(make("BIN")) / "backup-operator"
        if not operator.exists():
            run("make", "-C", TOP, "build")
        run(TESTBED, "build")
        self.kubectl = run(TESTBED, "kubectl").strip()
        go, peers = run(TESTBED, "go").strip(), root / "peers"
        peers.mkdir()
        environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false", "CGO_ENABLED": "0"}
        run(go, "build", "-trimpath", "-o", f"{peers}/", "./...", cwd=TOP / "tests/bench/peers", env=environment)
        self.bare = peers / "bare"
        self.ours, self.tutorial, self.kcm = root / "ours", root / "tutorial", root / "kcm"
        shutil.copy(operator, self.ours)
        shutil.copy(peers / "tutorial", self.tutorial)
        shutil.copy(pathlib.Path(self.kubectl).parent / "kube-controller-manager", self.kcm)


class Cluster:
    """A fresh API server with nothing else at work."""

    def __init__(self, programs, root):
        self.programs, self.root, self.config = programs, root, root / "client.conf"
        run(TESTBED, "down", stderr=subprocess.DEVNULL)
        run(TESTBED, "up", stderr=subprocess.DEVNULL)
        self.host = run(TESTBED, "kubeconfig").strip()
        for service in ("kubelet", "proxy", "scheduler", "kcm", "coredns", "containerd"):
            run(TESTBED, "stop", service)
        self.kubectl("apply", "--server-side", "-k", TOP / "deploy/crds")
        self.kubectl("apply", "-f", TOP / "tests/bench/peers/tutorial/crd.yaml")
        for name in ("backup-system", "bench"):
            self.kubectl("create", "namespace", name)
        self.kubectl("apply", "-f", TOP / "deploy/operator/flow_schema.yaml")
        self.kubectl("-n", "backup-system", "create", "serviceaccount", "backup-operator")
        self.kubectl("create", "clusterrolebinding", "bench", "--clusterrole=cluster-admin",
                     "--serviceaccount=backup-system:backup-operator")
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        token = self.kubectl("-n", "backup-system", "create", "token", "backup-operator", "--duration=24h").strip()
        admin = json.loads(run(self.programs.kubectl, "--kubeconfig", pathlib.Path(self.host).parent / "admin.conf",
                               "config", "view", "--raw", "-o", "json"))
        admin["users"] = [{"name": "bench", "user": {"token": token}}]
        admin["contexts"][0]["context"]["user"] = "bench"
        self.config.write_text(json.dumps(admin))

    def kubectl(self, *args):
        return run(self.programs.kubectl, "--kubeconfig", self.host, *args)

    def enter(self, *command):
        return [str(TESTBED), "enter", "env", f"KUBECONFIG={self.config}", *map(str, command)]

    def bare(self, *args):
        return json.loads(run(*self.enter(self.programs.bare, *args)))

    def count(self):
        return {key: value for key, value in self.bare("count").items()
                if key.split(" ", 1)[1].split("/")[0] in COUNTED and not key.startswith("WATCH")}

    def settled(self, quiet, most):
        """Requests so far, once none that writes came for `quiet` seconds."""
        deadline, last, since = time.monotonic() + most, None, time.monotonic()
        while True:
            counted = self.count()
            writes = sum(v for k, v in counted.items() if k.split(" ")[0] not in ("GET", "LIST"))
            if writes != last:
                last, since = writes, time.monotonic()
            elif time.monotonic() - since >= quiet or time.monotonic() > deadline:
                return counted
            time.sleep(0.5)

    def down(self):
        run(TESTBED, "down", stderr=subprocess.DEVNULL)


class Process:
    """A controller inside the cluster's namespaces."""

    def __init__(self, cluster, program, *args, **environment):
        self.program, self.log = str(program), open(cluster.root / f"{program.name}.log", "w", encoding="utf-8")
        pairs = [f"{key}={value}" for key, value in environment.items()]
        self.outer = subprocess.Popen(cluster.enter("env", *pairs, program, *args), stdout=self.log, stderr=self.log)
        self.pid = wait(30, f"{program.name} starts", self.find)

    def find(self):
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "exe") == self.program:
                    return int(entry.name)
            except OSError:
                pass
        return None

    def rss(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"{self.program} has ended; its log: {self.log.name}")

    def cpu(self):
        """Seconds of CPU so far."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        self.outer.wait()
        self.log.close()


def wait(seconds, what, probe):
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def ours(schedule):
    return "/apis/batch.isekiro.com/v1/namespaces/bench/mysqlbackups", {
        "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup", "metadata": {"name": "shop-%d"},
        "spec": {"schedule": schedule, "image": "none.invalid/none", "args": ["dump"], "successfulJobsHistoryLimit": 0}}


def cronjob(schedule):
    return "/apis/batch/v1/namespaces/bench/cronjobs", {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "shop-%d"},
        "spec": {"schedule": schedule, "successfulJobsHistoryLimit": 0, "jobTemplate": {"spec": {"template": POD}}}}


def task(schedule):
    return "/apis/bench.tutorial/v1/namespaces/bench/tasks", {
        "apiVersion": "bench.tutorial/v1", "kind": "Task", "metadata": {"name": "shop-%d"},
        "spec": {"schedule": schedule, "successfulJobsHistoryLimit": 0, "jobTemplate": {"spec": {"template": POD}}}}


def start_ours(cluster):
    return Process(cluster, cluster.programs.ours, RUNNER_IMAGE="backup-runner:bench", LEADER_ELECT="false", ENABLE_WEBHOOKS="false",
                   METRICS_BIND_ADDRESS="127.0.0.1:18080", HEALTH_PROBE_BIND_ADDRESS="127.0.0.1:18081", LOG_LEVEL="warn")


def start_kcm(*lifts):
    return lambda cluster: Process(
        cluster, cluster.programs.kcm, f"--kubeconfig={cluster.config}", "--controllers=cronjob-controller", "--leader-elect=false",
        "--use-service-account-credentials=false", "--bind-address=127.0.0.1", "--secure-port=10299", *lifts)


def start_tutorial(*lifts):
    return lambda cluster: Process(cluster, cluster.programs.tutorial, *lifts)


CONTESTANTS = {  # name: (its objects, how it starts, whether it gets all objects)
    "ours": (ours, start_ours, True),
    "cronjob lifted": (cronjob, start_kcm(*LIFTED, "--concurrent-cron-job-syncs=100"), True),
    "tutorial lifted": (task, start_tutorial("-kube-api-qps=5000", "-kube-api-burst=5000", "-workers=100"), True),
    "cronjob": (cronjob, start_kcm(), False),
    "tutorial": (task, start_tutorial(), False),
}


def contest(programs, root, name, n, lead):
    """One contestant, n objects due at one minute; `lead` seconds to make them known."""
    objects, start, _ = CONTESTANTS[name]
    cluster, process = Cluster(programs, root), None
    try:
        process = start(cluster)
        due = math.ceil((time.time() + lead) / 60) * 60
        at = time.gmtime(due)
        path, template = objects(f"{at.tm_min} {at.tm_hour} * * *")
        (root / "object.json").write_text(json.dumps(template))
        cluster.bare("create", "-path", path, "-template", root / "object.json", "-n", n)
        before = cluster.settled(3, max(1.0, due - 5 - time.time()))
        if time.time() > due - 2:
            say(f"{name}: {n} objects were not known {lead} s ahead; once more with more time")
            return None
        idle, busy = process.rss(), process.cpu()
        seen = cluster.bare("watch", "-n", n, "-slot", due, "-timeout", int(due - time.time()) + 900)
        busy = process.cpu() - busy
        after = cluster.settled(3, 300)
        memory = process.rss()
        some = min(n, 1000)
        job = None
        if name == "ours":
            job = json.loads(cluster.kubectl("-n", "bench", "get", "--raw", "/apis/batch/v1/namespaces/bench/jobs?limit=1"))["items"][0]
        cluster.bare("finish", "-n", some)
        # Ours deletes a finished Job 60 s after its end.
        end = cluster.settled(70, 400)
        created = sum(after.values()) - sum(before.values())
        finished = sum(end.values()) - sum(after.values()) - some - 1
        # 'bare finish' read one list; the GET of one Job is ours alone.
        finished -= 1 if job else 0
        deleted = end.get("DELETE jobs", 0) - after.get("DELETE jobs", 0)
        result = {**seen, "memory": memory, "idle": idle, "cpu": busy, "requests": created / n + (finished - deleted) / some, "deleted": deleted / some,
                  "all requests": created / n + finished / some,
                  "events": (end.get("POST events", 0) - before.get("POST events", 0)) / n, "objects": n, "job": job}
        shown = {k: round(v, 2) for k, v in result.items() if isinstance(v, float)}
        say(f"{name}: {n} objects: {shown}")
        moved = {k: round((end.get(k, 0) - before.get(k, 0)) / n, 2) for k in end if end.get(k, 0) > before.get(k, 0)}
        say(f"{name}: requests per object: {moved}")
        return result
    finally:
        if process:
            process.end()
        cluster.down()


def bare(programs, root, job, n):
    """The same Jobs from a client that does nothing else."""
    meta, spec = job["metadata"], job["spec"]
    for labels in (meta["labels"], spec["template"]["metadata"]["labels"]):
        for key in [k for k in labels if k.endswith(("controller-uid", "job-name"))]:
            del labels[key]
    spec.pop("selector", None)
    kept = {k: meta[k] for k in ("labels", "annotations", "ownerReferences") if k in meta}
    template = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**kept, "name": "shop-%d"}, "spec": spec}
    (root / "object.json").write_text(json.dumps(template))
    cluster = Cluster(programs, root)
    watching = None
    try:
        lists = cluster.bare("count").get("LIST jobs", 0)
        # The same watcher takes the rate of all contestants: the API server serves it meanwhile.
        watching = subprocess.Popen(cluster.enter(programs.bare, "watch", "-n", n, "-slot", int(time.time()), "-timeout", 900),
                                    stdout=subprocess.PIPE, text=True)
        wait(30, "the watch begins", lambda: cluster.bare("count").get("LIST jobs", 0) > lists)
        cluster.bare("create", "-path", "/apis/batch/v1/namespaces/bench/jobs", "-template", root / "object.json", "-n", n)
        made = json.loads(watching.communicate()[0])
    finally:
        if watching and watching.poll() is None:
            watching.kill()
        cluster.down()
    say(f"bare: {n} Jobs: {made['rate']:.0f}/s")
    return made


def rows(found):
    """The rows of docs/design.md's targets; peers that were not run have none."""
    table = []

    def values(name, field):
        return [r[field] for r in found.get(name, [])]

    def add(row, field, peer, limit, fits, unit):
        mine, other = values("ours", field), values(peer, field)
        if not mine or not other:
            return
        a, b = statistics.median(mine), statistics.median(other)
        ratio = a / b if b else math.inf
        spread = f"ours {min(mine):.4g} to {max(mine):.4g}, peer {min(other):.4g} to {max(other):.4g}, {len(mine)} rounds"
        table.append({"row": row, "ours": round(a, 2), "peer": round(b, 2), "peer_name": peer, "limit": limit,
                      "ratio": round(ratio, 3), "unit": unit, "spread": spread, "met": fits(a, ratio)})

    rate = "Jobs created per second, all objects due in one minute"
    add(rate, "rate", "bare", "≥ 0.8×", lambda a, r: r >= 0.8, "Jobs/s")
    for peer in ("cronjob lifted", "tutorial lifted"):
        add(rate, "rate", peer, "≥ 3×", lambda a, r: r >= 3, "Jobs/s")
    for peer in ("cronjob", "tutorial"):
        add(rate, "rate", peer, "≥ 3×", lambda a, r: r >= 3, "Jobs/s")
    add("start delay p50", "p50", "cronjob lifted", "–", lambda a, r: True, "s")
    add("start delay p99", "p99", "cronjob lifted", "≤ 1/3×", lambda a, r: r <= 1 / 3, "s")
    for peer in ("cronjob lifted", "tutorial lifted"):
        add("resident memory, all objects and a Job of each", "memory", peer, "≤ 1/4×", lambda a, r: r <= 0.25, "MiB")
        add("API requests per finished run, events included", "requests", peer, "≤ 4", lambda a, r: round(a, 2) <= 4, "requests")
        add("API requests per finished run and the deletion of its Job", "all requests", peer, "–", lambda a, r: True, "requests")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--few", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="contestants, separated by commas; ours is always one")
    args = parser.parse_args()
    os.environ.setdefault("TESTBED_NAME", "bench")
    only = [name.strip() for name in args.only.split(",") if name.strip()]
    root = pathlib.Path(tempfile.mkdtemp(prefix="bench-operator-"))
    try:
        programs, found = Programs(root), {}
        for _ in range(args.rounds):
            for name, (_, _, whole) in CONTESTANTS.items():
                if only and name != "ours" and name not in only:
                    continue
                n = args.objects if whole else min(args.few, args.objects)
                lead, result = 40 + n / 60, None
                while result is None:
                    result, lead = contest(programs, root, name, n, lead), lead * 2
                found.setdefault(name, []).append(result)
                if name == "ours" and (not only or "bare" in only):
                    found.setdefault("bare", []).append(bare(programs, root, result["job"], n))
        table = rows(found)
        print(f"{args.objects} objects ({args.few} where a limiter holds a peer to a few a second), {os.cpu_count()} cores, "
              f"load {os.getloadavg()[0]:.1f}, {args.rounds} rounds; doubled {sum(int(r['doubled']) for r in found['ours'])}, "
              f"lost {sum(r['objects'] - int(r['jobs']) for r in found['ours'])}")
        print(f"{'':62} {'ours':>9} {'peer':>9} {'ratio':>8} {'limit':>8}  peer")
        for r in table:
            print(f"{r['row'][:62]:62} {r['ours']:9} {r['peer']:9} {r['ratio']:8} {r['limit']:>8}  {r['peer_name']}{'' if r['met'] else '  MISSED'}")
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
