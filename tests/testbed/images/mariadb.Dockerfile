# A MariaDB server for tests and the demo. It makes its data directory at its first start; MARIADB_ROOT_PASSWORD is
# required, and every file in /initdb (a mounted ConfigMap, for instance) is run then.
FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-server mariadb-client \
 && rm -rf /var/lib/apt/lists/* /var/lib/mysql/* \
 && mkdir -p /run/mysqld /initdb \
 && chown -R 999:999 /run/mysqld /var/lib/mysql
COPY start /usr/local/bin/start
USER 999:999
EXPOSE 3306
ENTRYPOINT ["/usr/local/bin/start"]
