#!/usr/bin/env python3
"""The runner against the shell, in one run on one machine: wall time, CPU time and peak memory.

usage: runner.py PATH-OF-BACKUP-RUNNER [ROWS] [ROUNDS]

Starts a MariaDB of its own on loopback, fills it with orders, and takes turns between
`mariadb-dump | zstd -3 > file`, `mariadb-dump | gzip > file`, a dump to a file followed by `tar czf`,
and the runner, whose time includes hashing, the manifest, fsync and the read back.
"""
import json, os, pathlib, resource, shutil, socket, subprocess, sys, tempfile, time

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


def main():
    binary, rows = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4_500_000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    root = pathlib.Path(tempfile.mkdtemp(prefix="bench-runner-"))
    os.chmod(root, 0o755)
    server = None
    try:
        (root / "db").mkdir()
        server = Server(root / "db", rows)
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

        work = {
            "dump > /dev/null": shell(f"{dump} > /dev/null"),
            "dump | zstd -3 > file": shell(f"{dump} | zstd -q -3 > {root}/a.zst"),
            "backup-runner": runner,
            "dump | gzip > file": shell(f"{dump} | gzip > {root}/a.gz"),
            "dump > file, tar czf": shell(f"{dump} > {root}/a.sql && tar czf {root}/a.tgz -C {root} a.sql && rm {root}/a.sql"),
        }
        results = {name: [] for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                results[name].append(measure(server, run))
        report = json.loads((root / "report").read_text())
        print(f"{report['rawBytes'] / 1e6:.0f} MB of SQL, {report['rows']} rows, {os.cpu_count()} cores, best of {rounds}")
        ours = min(r["wall"] for r in results["backup-runner"]), min(r["cpu"] for r in results["backup-runner"])
        print(f"{'':24} {'wall s':>8} {'cpu s':>8} {'runner/it (wall)':>17} {'(cpu)':>7}")
        for name, all_of in results.items():
            wall, cpu = min(r["wall"] for r in all_of), min(r["cpu"] for r in all_of)
            print(f"{name:24} {wall:8.2f} {cpu:8.2f} {ours[0] / wall:17.2f} {ours[1] / cpu:7.2f}")
        print(f"peak memory of the runner: {max(r['peak'] for r in results['backup-runner']) / 1024:.1f} MiB")
    finally:
        if server:
            server.process.kill()
            server.process.wait()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
