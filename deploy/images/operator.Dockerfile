# The operator. `make docker-build` links the program statically and puts it into the build context, so that this file
# builds unchanged with docker and with buildah, and with any distribution on the build host.
FROM scratch
COPY backup-operator /usr/local/bin/backup-operator
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/backup-operator"]
