#!/usr/bin/env python3
"""The runner against the shell, in one run on one machine: wall time, CPU time and peak memory.

usage: runner.py [--json FILE] [--rows N] [--rounds N] [--mydumper PATH]... [--only dumps|restores] PATH-OF-BACKUP-RUNNER

Starts a MariaDB of its own on loopback, fills it with orders, and takes turns between the runner, whose time includes
hashing, the manifest, fsync and the read back, and its peers, who do none of that:

  mariadb-dump | zstd -3 > file        mariadb-dump | gzip > file
  a dump to a file, then tar through pigz, and through gzip, as gobackup makes its tgz
  mydumper, of this machine and each --mydumper, with as many threads, compressed as it can: zstd, or gzip

Then what it restores, into another server of its own, beside

  zstd -dc FILE | mariadb, of the same file: an artefact of the native engine, and one of the client
  myloader 1.x, where it stands beside a --mydumper: of a dump of INSERT and of one for LOAD DATA, each with 2 threads

The runner's time includes that it reads the artefact twice, compares it, and counts what is there; three tables with keys.

The runner is measured with its native engine of 1, 2 and 4 sessions and with the client. Beside it stands the program
`nothing` (dump/examples), if there is one: the native engine and mariadb-dump, both to nothing, show what the client's side
of a dump costs.

Each ratio is the median over the rounds of runner and peer of the same round. CPU is that of client, server and
programs together, where it is not said otherwise. --json writes a list of {row, ours, peer, peer_name, limit, ratio, unit,
spread, met}.
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

# Three tables with keys, about half of it in indexes: what a restore is measured by.
STORE = """
create database store; use store;
create table customers (id int primary key, mail varchar(60) not null, name varchar(60), unique key mail (mail), key name (name)) engine=innodb;
insert into customers select seq, concat(md5(seq), '@example.org'), concat(elt(1 + seq % 5, 'Ada ', 'Bob ', 'Cy ', 'Di ', 'Ed '), sha1(seq % 5000)) from seq_1_to_{small};
create table orders (id bigint primary key, customer int, placed datetime, status varchar(16), total decimal(12,2), note varchar(120),
  key customer (customer, placed), key placed (placed), key status (status, total)) engine=innodb;
insert into orders select seq, seq * 7919 % {small}, '2024-01-01' + interval seq * 7919 % 31536000 second,
  elt(1 + seq % 4, 'new', 'paid', 'shipped', 'returned'), seq * 31 % 100000 / 7, concat('order ', md5(seq), ' of ', sha1(seq % 1000)) from seq_1_to_{rows};
create table lines_of (orders bigint, pos tinyint, sku varchar(24), pieces int, price decimal(10,2), picture varbinary(40),
  primary key (orders, pos), key sku (sku, pieces)) engine=innodb;
insert into lines_of select 1 + seq div 3, seq % 3, concat('sku-', left(md5(seq % 20000), 16)), seq % 9, seq % 9999 / 7, unhex(sha1(seq)) from seq_1_to_{rows};
"""
USER = "create user bench@'%' identified by 'bench-password'; grant all on *.* to bench@'%';"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, root, sql):
        root.mkdir()
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
             f"--port={self.port}", "--bind-address=127.0.0.1", "--local-infile=1", "--innodb-buffer-pool-size=2G",
             "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=512M", "--max-allowed-packet=1G", *user],
            stderr=subprocess.DEVNULL)
        while subprocess.run(["mariadb", "--no-defaults", f"-S{self.socket}", "-uroot", "-e", "select 1"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.2)
        try:
            subprocess.run(["mariadb", "--no-defaults", f"-S{self.socket}", "-uroot"], input=sql.encode(), check=True)
        except BaseException:
            self.process.kill()
            raise

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


    def forget(self, database):
        """Drops a database, outside of what is measured."""
        subprocess.run(["mariadb", "--no-defaults", f"-S{self.socket}", "-uroot", "-e", f"drop database if exists {database}"], check=True)

    def sums(self, database):
        """What tells its tables from others."""
        sql = f"use {database}; checksum table customers, orders, lines_of"
        return subprocess.run(["mariadb", "--no-defaults", f"-S{self.socket}", "-uroot", "-N", "-e", sql], check=True, capture_output=True, text=True).stdout


def measure(server, run):
    before, db, start = resource.getrusage(resource.RUSAGE_CHILDREN), server.cpu(), time.monotonic()
    peak = run()
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    served = server.cpu() - db
    return {"wall": wall, "cpu": cpu + served, "client": cpu, "server": served, "peak": peak}


ZSTD, GZIP = "mariadb-dump | zstd -3 > file", "mariadb-dump | gzip > file"
PIGZ, TAR = "dump to a file, then tar with pigz", "dump to a file, then tar with gzip"
NOTHING = "mariadb-dump > /dev/null"
# What the runner's wall and CPU time may be of a peer's: design, targets. None: it is told and not judged.
CLIENT_LIMITS = {ZSTD: (1.0, None), GZIP: (1 / 2.5, None), PIGZ: (1 / 2, None), TAR: (1 / 3, None)}
NATIVE_LIMITS = {ZSTD: (0.65, 0.65), GZIP: (1 / 2.5, None), PIGZ: (1 / 2, None), TAR: (1 / 3, None)}
# mydumper, with as many threads.
MYDUMPER_LIMIT = 0.7
CLIENT_TO_NOTHING = 0.25
SESSIONS = (1, 2, 4)
WALL, CPU, MEMORY = "dump to read back: wall time", "dump to read back: CPU time", "dump to read back: peak memory"
READ = "dump to nothing: CPU time of the client's side"


def ours(sessions):
    return f"backup-runner, native, {sessions} sessions" if sessions > 1 else "backup-runner, native, 1 session"


def compared(row, a, b, peer, field, most):
    """A row: ours beside a peer, by the rounds."""
    ratios = [x[field] / y[field] for x, y in zip(a, b)]
    ratio = statistics.median(ratios)
    return {"row": row, "ours": round(statistics.median(r[field] for r in a), 2),
            "peer": round(statistics.median(r[field] for r in b), 2), "peer_name": peer,
            "limit": "–" if most is None else f"≤ {most:.3g}×", "ratio": round(ratio, 3), "unit": "s",
            "spread": f"ratio {min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} rounds", "met": most is None or ratio <= most}


def rows(results, mydumpers):
    table = []
    engines = [(ours(n), n, NATIVE_LIMITS) for n in SESSIONS] + [("backup-runner, client", None, CLIENT_LIMITS)]
    for name, sessions, limits in engines:
        # One session is told beside the others; two are what two cores are judged by.
        judged = sessions in (None, 2)
        for title, field, index in ((WALL, "wall", 0), (CPU, "cpu", 1)):
            title = f"{title}, {name.split(', ', 1)[1]}"
            for peer, most in limits.items():
                table.append(compared(title, results[name], results[peer], peer, field, most[index] if judged else None))
            for peer in mydumpers.get(sessions, []):
                most = MYDUMPER_LIMIT if sessions == 2 and "zstd" in peer and field == "wall" else None
                table.append(compared(title, results[name], results[peer], peer, field, most))
        peak = [r["peak"] / 1024 for r in results[name]]
        table.append({"row": f"{MEMORY}, {name.split(', ', 1)[1]}", "ours": round(max(peak), 1), "peer": 64, "peer_name": "the limit",
                      "limit": "≤ 64 MiB", "ratio": round(max(peak) / 64, 3), "unit": "MiB",
                      "spread": f"{min(peak):.1f} to {max(peak):.1f}, {len(peak)} rounds", "met": max(peak) <= 64})
    for sessions in SESSIONS:
        name = f"native to nothing, {sessions}"
        if name in results:
            most = CLIENT_TO_NOTHING if sessions <= 2 else None
            title = f"{READ}, {ours(sessions).split(', ')[-1]}"
            table.append(compared(title, results[name], results[NOTHING], NOTHING, "client", most))
    order = (WALL, CPU, MEMORY, READ)
    return sorted(table, key=lambda r: next(i for i, title in enumerate(order) if r["row"].startswith(title)))


RESTORE_WALL, RESTORE_CPU, RESTORE_MEMORY = "restore: wall time", "restore: CPU time", "restore: peak memory"
PIPE = "zstd -dc | mariadb"
# What a restore by two sessions may take of the pipe's wall and CPU time.
RESTORE_LIMITS = {"native": (0.5, 0.45), "plain": (0.7, None)}
# Of myloader's best.
MYLOADER_LIMIT = 1.1


def restore_rows(results, loaders):
    table = []
    for kind, limits in RESTORE_LIMITS.items():
        mine = results[f"backup-runner restore, {kind}"]
        for title, field, most in zip((RESTORE_WALL, RESTORE_CPU), ("wall", "cpu"), limits):
            table.append(compared(f"{title}, {kind}, 2 sessions", mine, results[f"{PIPE}, {kind}"], f"{PIPE}, of the same file", field, most))
        peak = [r["peak"] / 1024 for r in mine]
        table.append({"row": f"{RESTORE_MEMORY}, {kind}, 2 sessions", "ours": round(max(peak), 1), "peer": 64, "peer_name": "the limit",
                      "limit": "≤ 64 MiB", "ratio": round(max(peak) / 64, 3), "unit": "MiB",
                      "spread": f"{min(peak):.1f} to {max(peak):.1f}, {len(peak)} rounds", "met": max(peak) <= 64})
    best = min(loaders, key=lambda name: statistics.median(r["wall"] for r in results[name]), default=None)
    for name in loaders:
        most = MYLOADER_LIMIT if name == best else None
        table.append(compared(f"{RESTORE_WALL}, native, 2 sessions", results["backup-runner restore, native"], results[name], name, "wall", most))
    return table


def restores(root, binary, rows, rounds, mydumpers):
    """Restores of one database by the runner and its peers; gives the rows."""
    servers = []
    try:
        servers.append(source := Server(root / "source", STORE.format(rows=rows, small=max(rows // 10, 1)) + USER))
        servers.append(target := Server(root / "target", USER))
        wanted = source.sums("store")
        login = "--no-defaults -h127.0.0.1 --protocol=TCP -ubench -pbench-password"

        def runner(action, out, **more):
            spec = {"version": 1, "action": action, "run": {"name": "store-1", "trigger": "Manual"},
                    "object": {"kind": "MysqlBackup", "namespace": "bench", "name": "store", "uid": "bench"}, **more}
            server = source if action == "Backup" else target
            env = {"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(server.port), "USERNAME": "bench",
                   "PASSWORD": "bench-password", "SQLPATH": str(out), "BACKUP_TERMINATION_LOG": str(root / "report"),
                   "BACKUP_SPEC": json.dumps(spec)}
            return followed([binary], env, root / "report")

        work, loaders = {}, []
        for kind, engine in (("native", "Native"), ("plain", "Client")):
            out = root / f"out-{kind}"
            out.mkdir()
            runner("Backup", out, source={"engine": engine, "databases": ["store"]})
            file = next(f for f in out.rglob("*.zst") if f.is_file())
            print(f"{kind}: {file.stat().st_size / 1e6:.0f} MB stored, {json.loads((root / 'report').read_text())['rawBytes'] / 1e6:.0f} MB of SQL")
            work[f"backup-runner restore, {kind}"] = lambda out=out: runner(
                "Restore", out, source={"sessions": 2}, options={"restore": {}})
            work[f"{PIPE}, {kind}"] = shell(f"zstd -dc {file} | mariadb {login} -P{target.port} --binary-mode")
        for program in mydumpers:
            loader = pathlib.Path(program).with_name("myloader")
            version = version_of(loader) if loader.exists() else ""
            if not version.startswith("1."):
                continue
            for how, words in (("INSERT", []), ("LOAD DATA", ["--format=LOAD_DATA"])):
                made = root / f"my-{len(loaders)}"
                subprocess.run([program, "-h", "127.0.0.1", "-P", str(source.port), "-u", "bench", "-p", "bench-password", "-B", "store",
                                "-t", "2", *words, "-o", str(made)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                name = f"myloader {version}, {how}, 2 threads"
                work[name] = command([str(loader), "-h", "127.0.0.1", "-P", str(target.port), "-u", "bench", "-p", "bench-password",
                                      "-t", "2", "-d", str(made)])
                loaders.append(name)
        results = {name: [] for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                target.forget("store")
                os.sync()
                results[name].append(measure(target, run))
                assert target.sums("store") == wanted, f"{name} restored something else"
        told(results)
        return restore_rows(results, loaders)
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()


def shell(script):
    return command(["bash", "-o", "pipefail", "-c", script])


def command(words):
    def run():
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return run


def followed(words, env, report):
    """Runs the runner, and gives its peak of memory."""
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak] + [int(l.split()[1]) for l in status.splitlines() if l.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.05)
    assert process.returncode == 0, report.read_text()
    return peak


def version_of(program):
    words = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
    return next((w.lstrip("v") for w in words if w.lstrip("v")[:1].isdigit()), "?").strip(",")


def told(results):
    print(f"{'':36} {'wall s':>8} {'cpu s':>8} {'client':>8} {'server':>8}")
    for name, rounds in results.items():
        middle = lambda field: statistics.median(r[field] for r in rounds)
        print(f"{name:36} " + " ".join(f"{middle(field):8.2f}" for field in ("wall", "cpu", "client", "server")))


def compression(mydumper):
    """How this mydumper compresses: those before 0.11 know gzip alone."""
    said = subprocess.run([mydumper, "--help"], capture_output=True, text=True).stdout
    zstd = any("--compress" in line and "zstd" in line.lower() for line in said.splitlines()) or "ZSTD" in said
    return ("zstd", ["--compress=zstd"]) if zstd else ("gzip", ["--compress"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rows", type=int, default=4_500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("dumps", "restores"))
    parser.add_argument("--mydumper", action="append", default=[], metavar="PATH", help="one more mydumper to measure beside")
    args = parser.parse_args()
    binary, rounds = os.path.abspath(args.binary), args.rounds
    root = pathlib.Path(tempfile.mkdtemp(prefix="bench-runner-"))
    os.chmod(root, 0o755)
    try:
        table = []
        if args.only != "restores":
            table += dumps(root, binary, args.rows, rounds, args.mydumper)
        if args.only != "dumps":
            table += restores(root, binary, args.rows // 2, rounds, args.mydumper)
        for row in table:
            print(f"{row['row']:52} {row['peer_name']:36} {row['ratio']:7.2f} of it, limit {row['limit']}{'' if row['met'] else '  MISSED'}")
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(table, indent=1, ensure_ascii=False))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def dumps(root, binary, rows_of, rounds, others):
    """Dumps of one table by the runner and its peers; gives the rows."""
    server = None
    try:
        server = Server(root / "db", ORDERS.format(rows=rows_of))
        out = root / "out"
        out.mkdir()
        dump = (f"mariadb-dump --no-defaults -h127.0.0.1 -P{server.port} --protocol=TCP -ubench -pbench-password --single-transaction"
                " --quick --routines --events --triggers --hex-blob --default-character-set=utf8mb4 --databases shop")

        def runner(**source):
            def run():
                for old in out.iterdir():
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
                spec = {"version": 1, "action": "Backup", "source": source,
                        "object": {"kind": "MysqlBackup", "namespace": "bench", "name": "shop", "uid": "bench"},
                        "run": {"name": "shop-1", "trigger": "Manual"}}
                env = {"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(server.port), "USERNAME": "bench",
                       "PASSWORD": "bench-password", "SQLPATH": str(out), "BACKUP_TERMINATION_LOG": str(root / "report"),
                       "BACKUP_SPEC": json.dumps(spec)}
                peak = followed([binary], env, root / "report")
                engine = json.loads((root / "report").read_text()).get("engine")
                assert engine == source["engine"], f"{engine} dumped"
                return peak
            return run

        def mydumped(program, threads, how):
            def run():
                shutil.rmtree(root / "my", ignore_errors=True)
                subprocess.run([program, "-h", "127.0.0.1", "-P", str(server.port), "-u", "bench", "-p", "bench-password", "-B", "shop",
                                "-t", str(threads), "-G", "-E", "-R", *how, "-o", str(root / "my")], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return run

        tar = "tar -C {root} -cf - a.sql | {packer} > {root}/a.tgz && rm {root}/a.sql"
        work = {NOTHING: shell(f"{dump} > /dev/null"), ZSTD: shell(f"{dump} | zstd -q -3 > {root}/a.zst")}
        for sessions in SESSIONS:
            work[ours(sessions)] = runner(engine="Native", sessions=sessions)
        work["backup-runner, client"] = runner(engine="Client")
        nothing = pathlib.Path(binary).with_name("examples") / "nothing"
        for sessions in SESSIONS if nothing.exists() else ():
            work[f"native to nothing, {sessions}"] = shell(
                f"{nothing} {server.socket} bench bench-password {sessions} shop > /dev/null")
        mydumpers = {}
        for program in [p for p in [shutil.which("mydumper")] if p] + others:
            version = version_of(program)
            kind, how = compression(program)
            for sessions in SESSIONS:
                name = f"mydumper {version}, {kind}, {sessions} threads"
                work[name] = mydumped(program, sessions, how)
                mydumpers.setdefault(sessions, []).append(name)
        work.update({
            GZIP: shell(f"{dump} | gzip > {root}/a.gz"),
            PIGZ: shell(f"{dump} > {root}/a.sql && " + tar.format(root=root, packer="pigz")),
            TAR: shell(f"{dump} > {root}/a.sql && " + tar.format(root=root, packer="gzip")),
        })
        results = {name: [] for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                os.sync()
                results[name].append(measure(server, run))
        report = json.loads((root / "report").read_text())
        print(f"{report['rawBytes'] / 1e6:.0f} MB of SQL, {report['rows']} rows, {os.cpu_count()} cores, "
              f"load {os.getloadavg()[0]:.1f}, median of {rounds}")
        told(results)
        return rows(results, mydumpers)
    finally:
        if server:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()
