#!/usr/bin/env bash
# demo.sh up|down: shows the operator at its main job, on a real control plane that `up` starts and leaves running.
# With NODE=real, as root, the control plane has a real node, and containers in place of simulated pods.
# Each step checks its result: a wrong result ends the demo with a sentence and the operator's log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

node=${NODE:-simulated}
case $node in
  simulated) cluster=demo samples=e2e/demo old_image=python:3.13-slim new_image=python:3.14-slim ;;
  real) cluster=demo-real samples=e2e/demo/real old_image=warmpool.local/sandbox:1 new_image=warmpool.local/sandbox:2 ;;
  *) echo "NODE=$node is not known; write NODE=simulated or NODE=real" >&2; exit 2 ;;
esac
state=.cluster/$cluster
operator=target/release/warmpool
log=$state/log/operator.log
pidfile=$state/operator.pid
claim_every=2.5                       # seconds between two claims during the rollout
bin=${WARMPOOL_CLUSTER_BIN:-$PWD/.cluster/bin}
export PATH=$bin:$PATH                # the kubectl that was built with this control plane
export KUBECONFIG=$PWD/$state/kubeconfig
unclaimed=warmpool.dev/pool=python,warmpool.dev/state=warm
claimed=warmpool.dev/pool=python,warmpool.dev/state=claimed
first_claims='warmpool.dev/claim in (run-42,burst-1,burst-2,burst-3,burst-4,burst-5)'
identity='custom-columns=POD:.metadata.name,UID:.metadata.uid,IMAGE:.spec.containers[0].image'

# ---- output ------------------------------------------------------------------------------------------

step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
note() { printf '%s\n' "$@"; }

# Prints a command so that it can be pasted, and runs it.
run() {
  local word
  printf '\n$'
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_./,:=-]+$ ]]; then printf ' %s' "$word"; else printf " '%s'" "$word"; fi
  done
  printf '\n'
  "$@"
}

fail() {
  {
    printf '\nThe demo failed: %s\n' "$*"
    if [ -s "$log" ]; then printf 'The last lines of %s:\n' "$log"; tail -n 20 "$log"; fi
    echo "The control plane keeps running: export KUBECONFIG=$KUBECONFIG. 'make demo-down' stops it."
  } >&2
  exit 1
}

# expect SECONDS SENTENCE COMMAND...: waits until the command succeeds; at the deadline, fails with the sentence.
expect() {
  local deadline=$((SECONDS + $1)) sentence="$2 (waited $1 s)"
  shift 2
  until "$@" 2>/dev/null; do
    still_runs
    if ((SECONDS >= deadline)); then fail "$sentence"; fi
    sleep 0.2
  done
}

# ---- the operator's process --------------------------------------------------------------------------

# The start time of a process, in ticks since boot. PID and start time together identify one process, even if the PID is
# used again.
began() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; }

operator_pid() {
  local pid ticks
  [ -r "$pidfile" ] && read -r pid ticks <"$pidfile" && [ "$(began "$pid")" = "$ticks" ] && echo "$pid"
}

# A demo without its operator can only fail, so it fails at once.
still_runs() { [ ! -e "$pidfile" ] || operator_pid >/dev/null || fail "the operator has ended"; }

start_operator() {
  # Other programs on this machine may use the default ports.
  local flags=(--leader-elect=false --metrics-bind-address=0 --health-probe-bind-address=0)
  KUBECONFIG=$PWD/$state/operator.kubeconfig setsid "$operator" controller "${flags[@]}" >"$log" 2>&1 </dev/null &
  echo "$! $(began $!)" >"$pidfile"
}

stop_operator() {
  local pid
  if pid=$(operator_pid); then
    kill "$pid"
    for _ in {1..100}; do operator_pid >/dev/null || break; sleep 0.1; done
    if operator_pid >/dev/null; then
      echo "The operator (pid $pid) did not end within 10 s of SIGTERM; killing it."
      kill -9 "$pid"
    else
      echo "The operator (pid $pid) has ended."
    fi
  fi
  rm -f "$pidfile"
}

# ---- queries to the cluster ---------------------------------------------------------------------------

pool() { kubectl get pool python -o jsonpath="$1"; }
pool_is_full() { [ "$(pool '{.status.replicas} {.status.available}')" = "10 10" ]; }
no_pods() { [ -z "$(kubectl get pods -l "$1" -o name)" ]; }
unclaimed_images() { kubectl get pods -l "$unclaimed" -o jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sort -u; }

all_bound() {
  local phases
  phases=$(kubectl get sbc -o jsonpath='{range .items[*]}{.status.phase}{"\n"}{end}' | sort | uniq -c)
  [ "$(awk '{print $2}' <<<"$phases")" = Bound ]
}

# The longest wait of a claim whose name starts with $1, in milliseconds.
longest_wait_ms() {
  kubectl get sbc -o jsonpath='{range .items[*]}{.metadata.name} {.status.waitSeconds}{"\n"}{end}' |
    awk -v name="^$1" '$1 ~ name { if ($2 == "") exit 1; if ($2 > most) most = $2 } END { printf "%.0f\n", most * 1000 }'
}

rolled_out() {
  [ "$(pool '{.status.updated} {.status.available}')" = "10 10" ] && [ "$(unclaimed_images)" = "$new_image" ]
}

claim() {
  cat <<EOF
---
apiVersion: warmpool.dev/v1alpha1
kind: SandboxClaim
metadata: {name: $1}
spec: {poolRef: {name: python}}
EOF
}

# Creates one claim after the other while the file exists.
keep_claiming() {
  local n=0
  while [ -e "$state/claiming" ]; do
    n=$((n + 1))
    claim "rollout-$n" | kubectl create -f - >/dev/null
    sleep "$claim_every"
  done
}

# ---- the steps ---------------------------------------------------------------------------------------

prepare() {
  e2e/need.sh cargo cc go python3 openssl
  step "The operator: cargo build --release --locked (4 minutes on two cores the first time; then the control plane, 5)"
  cargo build --release --locked
  if [ "$node" = real ]; then
    step "The control plane, and a real node in it: kubelet and containerd"
    e2e/node/packages.sh
    e2e/node/node.py up --name "$cluster"
  else
    step "The control plane: etcd, kube-apiserver, controller manager, scheduler and KWOK"
    e2e/cluster/cluster.py up --name "$cluster" >/dev/null
  fi

  step "The CRDs and the operator's permissions, as every user installs them"
  mkdir -p "$state/log"
  stop_operator   # from an earlier demo
  run kubectl apply -k crds
  run kubectl apply -k config/rbac
  kubectl wait --for=condition=Established crd/pools.warmpool.dev crd/sandboxclaims.warmpool.dev --timeout=30s >/dev/null
  kubectl get pools,sbc -o name | xargs -r kubectl delete >/dev/null   # from an earlier demo
  expect 30 "the sandboxes of an earlier demo should be gone" no_pods warmpool.dev/pool=python

  note "" "The operator runs as a process beside the cluster, with the token of its own ServiceAccount and only these" \
    "permissions. Its log is $log."
  e2e/cluster/cluster.py token --name "$cluster" warmpool-system warmpool --out "$state/operator.kubeconfig" >/dev/null
  start_operator
}

warm_up() {
  step "1. A pool of 10 warms up"
  if [ "$node" = real ]; then
    note "The sandboxes are real containers of a small image that was built on this machine."
  else
    note "KWOK simulates the sandboxes: the pods are real objects of a real API server, and no containers run in them." \
      "Each sandbox takes 2 s to become Ready."
  fi
  note "The sample claim is created together with the pool, so it waits for the first sandbox."
  run kubectl apply -k "$samples"
  run kubectl get pools
  expect 60 "ten sandboxes should be available" pool_is_full
  expect 10 "claim run-42 should be bound to the first sandbox that became available" all_bound
  run kubectl get pools
  run kubectl get sbc
  if [ "$node" = real ]; then
    note "" "A command runs in the claimed sandbox:"
    run kubectl exec "$(kubectl get sbc run-42 -o jsonpath='{.status.sandboxes[0].name}')" -- ps
  fi
}

burst() {
  step "2. Five claims at once, bound in milliseconds; the pool refills"
  { for n in 1 2 3 4 5; do claim "burst-$n"; done; } >"$state/burst.yaml"
  run kubectl create -f "$state/burst.yaml"
  expect 30 "five claims on a pool with ten available sandboxes should be Ready" \
    kubectl wait --for=condition=Ready sbc --all --timeout=2s >/dev/null
  run kubectl get sbc
  run kubectl get pools
  local wait
  wait=$(longest_wait_ms burst-) || fail "each claim's status should say how long it waited"
  ((wait < 1000)) || fail "a claim on a warm pool should not wait; one of these waited $wait ms"
  expect 60 "the pool should be refilled to ten available" pool_is_full
  run kubectl get pools
}

rollout() {
  step "3. A new template rolls through the unclaimed sandboxes while claims keep arriving"
  local claiming deadline wait served
  note "The claimed sandboxes before:"
  run kubectl get pods -l "$first_claims" -o "$identity" | tee "$state/claimed.before"

  touch "$state/claiming"
  keep_claiming &
  claiming=$!
  run kubectl patch pool python --type=json \
    -p "[{\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/image\", \"value\": \"$new_image\"}]"
  note "" "A claim is created every $claim_every s. The rollout may make 2 unclaimed sandboxes (25% of 10)" \
    "unavailable. A claim takes one more, so AVAILABLE may be below 8 while a new sandbox warms up in its place."
  printf '\n$ kubectl get pools   # once a second\n'
  kubectl get pools
  deadline=$((SECONDS + 120))
  until [ "$(pool '{.status.updated}')" = 10 ] && [ "$(unclaimed_images)" = "$new_image" ]; do
    still_runs
    ((SECONDS < deadline)) || fail "all unclaimed sandboxes should have image $new_image within 120 s"
    kill -0 "$claiming" 2>/dev/null || fail "a claim could not be created during the rollout"
    sleep 1
    kubectl get pools | tail -n 1
  done
  rm "$state/claiming"
  wait "$claiming" || fail "a claim could not be created during the rollout"
  expect 60 "the pool should come to rest with 10 updated and 10 available" rolled_out
  kubectl get pools | tail -n 1

  expect 10 "every claim created during the rollout should be bound" all_bound
  served=$(kubectl get sbc -o name | grep -c /rollout-)
  wait=$(longest_wait_ms rollout-) || fail "each claim's status should say how long it waited"
  note "" "$served claims arrived during the rollout. All are bound; the longest wait was $wait ms."
  note "The sandboxes that were claimed before the rollout are the same, and keep their old image:"
  run kubectl get pods -l "$first_claims" -o "$identity" | tee "$state/claimed.after"
  cmp -s "$state/claimed.before" "$state/claimed.after" || fail "a claimed sandbox changed during the rollout"
  [ "$(grep -c " $old_image\$" "$state/claimed.after")" = 6 ] || fail "the six sandboxes claimed before should have image $old_image"
}

release() {
  step "4. Deleting the claims deletes their sandboxes"
  run kubectl delete sbc --all
  # The garbage collector may take 30 s to learn of a new type. It retries the deletions that failed before, ever more slowly.
  expect 90 "the sandboxes of deleted claims should be gone" no_pods "$claimed"
  expect 30 "the pool should have ten available sandboxes" pool_is_full
  run kubectl get pods -l "$claimed"
  run kubectl get pools
}

at_rest() {
  step "5. The plan: what the operator would do next, and why"
  run "$operator" plan
  "$operator" plan -o json | python3 -c 'import json, sys; sys.exit(any(pool["actions"] for pool in json.load(sys.stdin)["pools"]))' ||
    fail "with the pool full and no claims, the plan should be empty"
}

up() {
  prepare
  warm_up
  burst
  rollout
  release
  at_rest
  step "Every step succeeded. The cluster and the operator keep running; try:"
  cat <<EOF
  export KUBECONFIG=$KUBECONFIG PATH=$bin:\$PATH
  kubectl get pools,sbc,pods
  kubectl scale pool python --replicas=20
  kubectl apply -f config/samples/claim.yaml
  kubectl explain pool.spec.updateStrategy
  tail -f $PWD/$log
  make demo-down
EOF
}

down() {
  for cluster in demo demo-real; do
    state=.cluster/$cluster pidfile=.cluster/$cluster/operator.pid
    [ -d "$state" ] || continue
    stop_operator
    if [ -d "$state/node" ]; then e2e/node/node.py down --name "$cluster"; fi
    e2e/cluster/cluster.py down --name "$cluster"
  done
}

trap 'rm -f "$state/claiming"' EXIT
case ${1:-} in
  up) up ;;
  down) down ;;
  *) echo "usage: demo.sh up|down" >&2; exit 2 ;;
esac
