# Clients in an image that is no distribution's: MariaDB 11.8's, of Debian trixie, with the libraries they link to in a
# directory of their own; a stand-in of mongodump; a shell. There is nothing else, neither /etc nor /tmp.
FROM debian:bookworm-slim AS parts
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends patchelf busybox-static \
 && mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1) \
 && mkdir -p /suite/lists/partial /suite/archives/partial /suite/root /parts/bin /parts/opt/mariadb/bin /parts/opt/mariadb/lib \
 && : >/suite/status \
 && echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >/suite/sources.list \
 && printf '%s;\n' 'Dir::Etc::SourceList "/suite/sources.list"' 'Dir::Etc::SourceParts "/dev/null"' 'Dir::State::Lists "/suite/lists"' \
      'Dir::State::Status "/suite/status"' 'Dir::Cache::Archives "/suite/archives"' 'Dir::Cache::pkgcache ""' \
      'Dir::Cache::srcpkgcache ""' 'APT::Sandbox::User "root"' 'Acquire::Check-Valid-Until "false"' 'APT::Install-Recommends "false"' >/suite/apt.conf \
 && export APT_CONFIG=/suite/apt.conf && apt-get update && apt-get install -y --download-only mariadb-client \
 && for file in /suite/archives/*.deb; do dpkg-deb -x "$file" /suite/root || exit 1; done \
 && cd /parts/opt/mariadb && all=$(echo /suite/root/usr/lib/*-linux-gnu) && loader=$(basename "$all"/ld-linux-*.so.*) \
 && for name in mariadb-dump mariadb; do cp "/suite/root/usr/bin/$name" bin/ \
      && "$all/$loader" --library-path "$all" --list "bin/$name" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | xargs -I{} cp -L {} lib/ || exit 1; done \
 && cp -L "$all/$loader" lib/ \
 && for name in mariadb-dump mariadb; do patchelf --set-interpreter "/opt/mariadb/lib/$loader" --force-rpath --set-rpath /opt/mariadb/lib "bin/$name" || exit 1; done \
 && cp /bin/busybox /parts/bin/busybox && ln -s busybox /parts/bin/sh
COPY mongodump /parts/bin/mongodump

FROM scratch
COPY --from=parts /parts/ /
ENV PATH=/opt/mariadb/bin:/bin
