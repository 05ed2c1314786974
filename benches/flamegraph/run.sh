#!/usr/bin/env bash
# run.sh [FOLDER DOCUMENT]: records the operator's stacks while it serves 20 claims a second, serves a burst, fills a pool
# and starts with 10,000 sandboxes, draws them, and prints which part took which share. With a folder the pictures go there,
# and with a document the shares go into it.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=.cluster/flamegraph
folder=${1:-$out}
document=${2:-}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$out" "$folder"

if ! perf record --quiet --event cpu-clock --output "$out/probe.data" -- true 2>"$out/probe.log"; then
  cat "$out/probe.log" >&2
  echo "perf may not record here. Run as root, or: sysctl kernel.perf_event_paranoid=2" >&2
  exit 1
fi
if ! command -v inferno-flamegraph >/dev/null; then
  echo "inferno is missing. Installing it (a minute or two): cargo install --locked inferno"
  cargo install --locked inferno
  PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
fi

# Frame pointers make stacks cheap to record, and the standard library has them, too.
RUSTFLAGS="${RUSTFLAGS:-} -C force-frame-pointers=yes" cargo build --locked --profile profiling --bin warmpool
cargo bench --locked --bench cluster -- --busy --only rate20,burst,fill,start --repetitions 1 \
  --operator "$target/profiling/warmpool" --stacks "$out"

draw() {
  perf script --no-inline --fields comm,tid,time,event,ip,sym,dso --input "$out/$1.data" 2>/dev/null |
    inferno-collapse-perf --quiet --kernel | benches/flamegraph/shorten.py >"$out/$1.folded"
  # Without the scripts of inferno, which are not ours to distribute: a document shows the picture without them anyway.
  inferno-flamegraph --quiet --deterministic --no-javascript --colors rust --minwidth 0.3 --title "$2" "$out/$1.folded" |
    python3 -c 'import re, sys; print(re.sub(r"<script.*?</script>| onload=\"init.evt.\"|<text id=\"(search|unzoom|matched)\".*?</text>", "", sys.stdin.read(), flags=re.S), end="")' \
      >"$folder/flamegraph-$1.svg"
  echo "drawn: $folder/flamegraph-$1.svg"
}
draw rate20 "Processor time of the operator at 20 claims a second"
draw burst "Processor time of the operator in a burst of 300 claims"
draw fill "Processor time of the operator while it fills a pool of 1,000"
draw start "Processor time of the operator from its start to its first binding with 10,000 sandboxes"
benches/flamegraph/shares.py ${document:+--document "$document"} "$out"/{rate20,burst,fill,start}.folded
