# Servers for tests: the first argument says which one (see start). The context has moto, an S3 server, in moto/: Debian has
# no package of it.
FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql redis-server redis-tools apache2-bin openssl python3 curl \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/* \
 && mkdir /data && chown postgres:postgres /data
COPY moto /opt/moto
COPY start /usr/local/bin/start
# PostgreSQL refuses root, and wants its user to have a name.
USER postgres:postgres
EXPOSE 5432 6379 5000 8080
ENTRYPOINT ["/usr/local/bin/start"]
