# The program in backup Jobs, with the database clients it drives, and the MariaDB server that verifications by restore
# fill and throw away (mariadb-server-core: the server alone). `make docker-build` links the program statically and puts
# it into the build context, so that this file builds unchanged with docker and with buildah.
FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-client mariadb-server-core postgresql-client redis-tools etcd-client lzip lzop ncompress ca-certificates tzdata zstd \
 && rm -rf /var/lib/apt/lists/*
COPY backup-runner /usr/local/bin/backup-runner
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/backup-runner"]
