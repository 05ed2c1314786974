# The operator as one static binary in an otherwise empty image:
#   docker build -t warmpool .
# BUILD_IMAGE is any glibc-based image with a Rust toolchain and a C compiler.
ARG BUILD_IMAGE=rust:1-bookworm

FROM ${BUILD_IMAGE} AS build
# cargo-auditable writes the list of crates into the binary: a bill of materials that trivy, grype, syft, osv-scanner and
# `cargo audit bin` read.
ARG CARGO_AUDITABLE=0.7.7
RUN cargo install --locked --root /tools cargo-auditable@${CARGO_AUDITABLE}
WORKDIR /build
COPY . .
# With --target the flag does not reach build scripts and procedural macros, which cannot be static.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
 && export PATH="/tools/bin:$PATH" RUSTFLAGS="-C target-feature=+crt-static" \
 && cargo auditable build --release --locked --bin warmpool --target "$target" \
 && cp "target/$target/release/warmpool" /warmpool

FROM scratch
# The commit of the build: --build-arg REVISION=$(git rev-parse HEAD)
ARG REVISION=unknown
LABEL org.opencontainers.image.title="warmpool" \
      org.opencontainers.image.description="Kubernetes operator that keeps sandboxes warm and hands them to claims" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /warmpool /warmpool
USER 65532:65532
ENTRYPOINT ["/warmpool"]
CMD ["controller"]
