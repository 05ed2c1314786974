# The operator as one static binary in an otherwise empty image:
#   docker build -t warmpool .
# BUILD_IMAGE is any glibc-based image with a Rust toolchain and a C compiler.
ARG BUILD_IMAGE=rust:1-bookworm

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
COPY . .
# Naming the target keeps the flag away from build scripts and procedural macros, which cannot be static.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
 && RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --bin warmpool --target "$target" \
 && cp "target/$target/release/warmpool" /warmpool

FROM scratch
LABEL org.opencontainers.image.title="warmpool" \
      org.opencontainers.image.description="Kubernetes operator that keeps sandboxes warm and hands them to claims" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /warmpool /warmpool
USER 65532:65532
ENTRYPOINT ["/warmpool"]
CMD ["controller"]
