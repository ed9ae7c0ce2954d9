# The image: the program, the libraries that it loads, time zones, certificate authorities, nothing else; no shell.
#   docker build --build-arg PREHEAT_COMMIT=$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$(packaging/date.sh) .
# Without a daemon: packaging/image.sh. See docs/deploy.md.
# A tag may be another image tomorrow: a release names the digest that it was built and tested with,
#   --build-arg BASE=debian:12-slim@sha256:..., and packaging/image.sh refuses to release without one.
ARG BASE=debian:12-slim

FROM ${BASE} AS build
WORKDIR /src
COPY tests/dev_tools.sh tests/
RUN ["bash", "-ec", ". tests/dev_tools.sh; need \"${BUILD_NEEDS[@]}\" \"${PACKAGE_NEEDS[@]}\""]
COPY . .
ARG PREHEAT_COMMIT
ARG SOURCE_DATE_EPOCH
RUN packaging/image_files.sh /image

FROM scratch
ARG PREHEAT_COMMIT
LABEL org.opencontainers.image.title="preheat" \
      org.opencontainers.image.description="Cluster autoscaler and warm pools for GPU inference on Kubernetes" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.revision="${PREHEAT_COMMIT}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="scratch"
COPY --from=build /image/files/ /
COPY --from=build --chown=65532:65532 /image/state/ /var/lib/preheat/
ENV PATH=/usr/bin
USER 65532:65532
WORKDIR /var/lib/preheat
ENTRYPOINT ["/usr/bin/preheat"]
CMD ["help"]
