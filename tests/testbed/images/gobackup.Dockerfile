# gobackup's image as far as it can be had here: its clients from Debian, and a stand-in for its program (see gobackup/gobackup),
# which is in no package. Like the real one it starts as root.
FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-client postgresql-client redis-tools openssl bzip2 xz-utils zstd python3 python3-yaml python3-boto3 tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && mkdir -m 700 /root/.gobackup
COPY gobackup /usr/local/bin/gobackup
CMD ["/usr/local/bin/gobackup", "run"]
