# The program in backup Jobs, with the database clients it drives, and the servers that verifications by restore fill and
# throw away: MariaDB's (mariadb-server-core: the server alone), PostgreSQL's and Redis's. `make docker-build` links the program statically and puts
# it into the build context, so that this file builds unchanged with docker and with buildah.

# MySQL's own client, which bookworm lacks, and mysqlbinlog, which Debian has beside the server: from sid with the libraries
# they link to, in a directory of their own. Which packages these are, to the byte, is in mysql-client.sha256 (deploy/images/pin-mysql writes it): what the source has beside
# them is refused. Debian's signature is checked too; that it is of today is not, because the packages are those of one day.
# MYSQL_SOURCE=mirror takes what the base's own mirror has, says what differs, and is for images that stay on this machine.
FROM debian:bookworm-slim AS mysql
ARG MYSQL_SNAPSHOT=20261030T120000Z
ARG MYSQL_SOURCE=snapshot
COPY mysql-client.sha256 /sid/pinned
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends patchelf \
 && case "$MYSQL_SOURCE" in \
      snapshot) mirror=http://snapshot.debian.org/archive/debian/$MYSQL_SNAPSHOT ;; \
      mirror) mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1) ;; \
      *) echo "MYSQL_SOURCE is snapshot or mirror, not $MYSQL_SOURCE" >&2; exit 1 ;; \
    esac \
 && mkdir -p /sid/lists/partial /sid/archives/partial /sid/root /opt/mysql/bin && : >/sid/status \
 && echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >/sid/sources.list \
 && printf '%s;\n' 'Dir::Etc::SourceList "/sid/sources.list"' 'Dir::Etc::SourceParts "/dev/null"' 'Dir::State::Lists "/sid/lists"' \
      'Dir::State::Status "/sid/status"' 'Dir::Cache::Archives "/sid/archives"' 'Dir::Cache::pkgcache ""' \
      'Dir::Cache::srcpkgcache ""' 'APT::Sandbox::User "root"' 'Acquire::Check-Valid-Until "false"' 'APT::Install-Recommends "false"' >/sid/apt.conf \
 && export APT_CONFIG=/sid/apt.conf && apt-get update && apt-get install -y --download-only mysql-client-core \
 && (cd /sid/archives && apt-get download mysql-server-core) \
 && (cd /sid/archives && for file in *.deb; do grep -F "  $file" /sid/pinned || echo "0  $file"; done >/sid/wanted \
      && sha256sum --check --quiet --strict /sid/wanted || { \
        echo "$mirror has other packages than mysql-client.sha256 names: run deploy/images/pin-mysql" >&2; [ "$MYSQL_SOURCE" = mirror ]; }) \
 && for file in /sid/archives/*.deb; do case $file in \
      */mysql-server-core_*) dpkg-deb --fsys-tarfile "$file" | tar -C /sid/root -x ./usr/bin/mysqlbinlog ;; \
      *) dpkg-deb -x "$file" /sid/root ;; \
    esac || exit 1; done \
 && cp -a /sid/root/usr/lib/*-linux-gnu /opt/mysql/lib && loader=$(basename /opt/mysql/lib/ld-linux-*.so.*) \
 && for name in mysqldump mysql mysqlbinlog; do cp "/sid/root/usr/bin/$name" /opt/mysql/bin/ \
      && patchelf --set-interpreter "/opt/mysql/lib/$loader" --force-rpath --set-rpath /opt/mysql/lib "/opt/mysql/bin/$name" \
      && "/opt/mysql/bin/$name" --version || exit 1; done \
 && rm -rf /opt/mysql/lib/gconv /opt/mysql/lib/perl* \
 && mkdir /opt/mysql/plugin && cp /sid/root/usr/lib/mysql/plugin/*_password.so /opt/mysql/plugin/

FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-client mariadb-server-core postgresql-client redis-tools etcd-client lzip lzop ncompress ca-certificates tzdata zstd \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# PostgreSQL's server, without the compiler of its JIT and without a cluster; the name service by which initdb runs as a
# user without a name. The program of redis-tools is Redis's server under the server's name.
RUN mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql libnss-wrapper \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/lib/*/libLLVM-* /usr/lib/*/libz3.so.* /usr/lib/postgresql/*/lib/bitcode \
      /usr/lib/postgresql/*/lib/llvmjit* /usr/share/i18n /var/log/postgresql /var/lib/postgresql \
 && ln -s redis-check-rdb /usr/bin/redis-server && redis-server --version && /usr/lib/postgresql/*/bin/postgres --version
COPY --from=mysql /opt/mysql /opt/mysql
# Where the client looks for the plugins of users from before MySQL 9.
COPY --from=mysql /opt/mysql/plugin /usr/lib/mysql/plugin
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/mysql/bin
COPY backup-runner /usr/local/bin/backup-runner
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/backup-runner"]
