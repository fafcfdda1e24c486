#!/usr/bin/env python3
"""The runner against the shell, in one run on one machine: wall time, CPU time and peak memory.

usage: runner.py [--json FILE] [--rows N] [--rounds N] PATH-OF-BACKUP-RUNNER

Starts a MariaDB of its own on loopback, fills it with orders, and takes turns between the runner, whose time includes
hashing, the manifest, fsync and the read back, and its peers, who do none of that:

  mariadb-dump | zstd -3 > file        mariadb-dump | gzip > file
  a dump to a file, then tar through pigz, and through gzip, as gobackup makes its tgz

Each ratio is the median over the rounds of runner and peer of the same round. CPU is that of client, server and
programs together. --json writes a list of {row, ours, peer, peer_name, limit, ratio, unit, spread, met}.
"""
import argparse, json, os, pathlib, resource, shutil, socket, statistics, subprocess, tempfile, time

ORDERS = """
create database shop; use shop;
create table orders (id bigint primary key, customer int, placed datetime, status varchar(16),
  total decimal(12,2), note varchar(120), address varchar(80)) engine=innodb;
insert into orders select seq, seq * 7919 % 500000, '2024-01-01' + interval seq second,
  elt(1 + seq % 4, 'new', 'paid', 'shipped', 'returned'), seq % 100000 / 7,
  concat('order ', md5(seq), ' of ', sha1(seq % 1000)), concat(seq % 999, ' Main Street, ', md5(seq % 5000))
  from seq_1_to_{rows};
create user bench@'%' identified by 'bench-password'; grant all on *.* to bench@'%';
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, root, rows):
        self.port, data = free_port(), root / "data"
        data.mkdir()
        user = []
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "mysql:mysql", root], check=True)
            os.chmod(root, 0o755)
            user = ["--user=mysql"]
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--tmpdir={root}", "--skip-test-db",
                        "--auth-root-authentication-method=normal", *user], check=True, stdout=subprocess.DEVNULL)
        self.socket = root / "s"
        self.process = subprocess.Popen(
            ["mariadbd", "--no-defaults", f"--datadir={data}", f"--tmpdir={root}", f"--socket={self.socket}",
             f"--port={self.port}", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=2G",
             "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=512M", "--max-allowed-packet=1G", *user],
            stderr=subprocess.DEVNULL)
        while subprocess.run(["mariadb", "--no-defaults", f"-S{self.socket}", "-uroot", "-e", "select 1"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.2)
        subprocess.run(["mariadb", "--no-defaults", f"-S{self.socket}", "-uroot"], input=ORDERS.format(rows=rows).encode(), check=True)

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server, run):
    before, db, start = resource.getrusage(resource.RUSAGE_CHILDREN), server.cpu(), time.monotonic()
    peak = run()
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu + server.cpu() - db, "peak": peak}


# Peer, and what the runner's wall time may be of its: design, targets.
PEERS = {
    "mariadb-dump | zstd -3 > file": ("≤ 1×", 1.0),
    "mariadb-dump | gzip > file": ("≤ 1/2.5×", 1 / 2.5),
    "dump to a file, then tar with pigz": ("≤ 1/2×", 1 / 2),
    "dump to a file, then tar with gzip": ("≤ 1/3×", 1 / 3),
}
WALL = "dump to read back: wall time"
CPU = "dump to read back: CPU time"
MEMORY = "dump to read back: peak memory"


def rows(results):
    ours, table = results["backup-runner"], []
    for peer, (limit, most) in PEERS.items():
        other = results[peer]
        for row, field in ((WALL, "wall"), (CPU, "cpu")):
            ratios = [a[field] / b[field] for a, b in zip(ours, other)]
            ratio = statistics.median(ratios)
            table.append({
                "row": row, "ours": round(statistics.median(r[field] for r in ours), 2),
                "peer": round(statistics.median(r[field] for r in other), 2), "peer_name": peer,
                "limit": limit if field == "wall" else "–", "ratio": round(ratio, 3), "unit": "s",
                "spread": f"ratio {min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} rounds",
                "met": ratio <= most if field == "wall" else True})
    peak = [r["peak"] / 1024 for r in ours]
    table.append({"row": MEMORY, "ours": round(max(peak), 1), "peer": 64, "peer_name": "the limit", "limit": "≤ 64 MiB",
                  "ratio": round(max(peak) / 64, 3), "unit": "MiB", "spread": f"{min(peak):.1f} to {max(peak):.1f}, {len(peak)} rounds",
                  "met": max(peak) <= 64})
    return sorted(table, key=lambda r: (WALL, CPU, MEMORY).index(r["row"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rows", type=int, default=4_500_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    binary, rounds = os.path.abspath(args.binary), args.rounds
    root = pathlib.Path(tempfile.mkdtemp(prefix="bench-runner-"))
    os.chmod(root, 0o755)
    server = None
    try:
        (root / "db").mkdir()
        server = Server(root / "db", args.rows)
        out = root / "out"
        out.mkdir()
        dump = (f"mariadb-dump --no-defaults -h127.0.0.1 -P{server.port} --protocol=TCP -ubench -pbench-password --single-transaction"
                " --quick --routines --events --triggers --hex-blob --default-character-set=utf8mb4 --databases shop")

        def shell(script):
            def run():
                subprocess.run(["bash", "-o", "pipefail", "-c", script], check=True)
            return run

        def runner():
            for old in out.iterdir():
                shutil.rmtree(old) if old.is_dir() else old.unlink()
            env = {"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(server.port), "USERNAME": "bench",
                   "PASSWORD": "bench-password", "SQLPATH": str(out), "BACKUP_TERMINATION_LOG": str(root / "report")}
            process = subprocess.Popen([binary], env=env, stdout=subprocess.DEVNULL)
            peak = 0
            while process.poll() is None:
                try:
                    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                    peak = max([peak] + [int(l.split()[1]) for l in status.splitlines() if l.startswith("VmHWM")])
                except OSError:
                    pass
                time.sleep(0.05)
            assert process.returncode == 0, (root / "report").read_text()
            return peak

        tar = "tar -C {root} -cf - a.sql | {packer} > {root}/a.tgz && rm {root}/a.sql"
        work = {
            "dump > /dev/null": shell(f"{dump} > /dev/null"),
            "mariadb-dump | zstd -3 > file": shell(f"{dump} | zstd -q -3 > {root}/a.zst"),
            "backup-runner": runner,
            "mariadb-dump | gzip > file": shell(f"{dump} | gzip > {root}/a.gz"),
            "dump to a file, then tar with pigz": shell(f"{dump} > {root}/a.sql && " + tar.format(root=root, packer="pigz")),
            "dump to a file, then tar with gzip": shell(f"{dump} > {root}/a.sql && " + tar.format(root=root, packer="gzip")),
        }
        results = {name: [] for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                os.sync()
                results[name].append(measure(server, run))
        report = json.loads((root / "report").read_text())
        print(f"{report['rawBytes'] / 1e6:.0f} MB of SQL, {report['rows']} rows, {os.cpu_count()} cores, "
              f"load {os.getloadavg()[0]:.1f}, median of {rounds}")
        middle = lambda name, field: statistics.median(r[field] for r in results[name])
        print(f"{'':36} {'wall s':>8} {'cpu s':>8}")
        for name in work:
            print(f"{name:36} {middle(name, 'wall'):8.2f} {middle(name, 'cpu'):8.2f}")
        table = rows(results)
        for row in table:
            print(f"{row['row']:32} {row['peer_name']:36} {row['ratio']:7.2f} of it, limit {row['limit']}{'' if row['met'] else '  MISSED'}")
        print(f"peak memory of the runner: {max(r['peak'] for r in results['backup-runner']) / 1024:.1f} MiB")
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(table, indent=1, ensure_ascii=False))
    finally:
        if server:
            server.process.kill()
            server.process.wait()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
