# The program in backup Jobs alone, with the CA certificates that stores and receivers are checked against: for runs that
# need no client of a database and no scratch server, such as those of a MysqlBackup with spec.source.engine Native. The
# program is linked statically and has the zones of the world within. `make docker-build` puts it into the build context,
# so that this file builds unchanged with docker and with buildah.
FROM debian:bookworm-slim AS certificates
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates

FROM scratch
COPY --from=certificates /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY backup-runner /usr/local/bin/backup-runner
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/backup-runner"]
