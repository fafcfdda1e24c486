# A database that no package brings, and its own clients: the context holds the programs.
FROM debian:bookworm-slim
COPY . /usr/local/bin/
