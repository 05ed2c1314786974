#!/usr/bin/env bash
# other_crds.sh: prints the folder with the CRDs of other projects whose objects the docs show: KEDA, Argo CD and Flux. Copies
# them from the Go modules of these projects, once, to .cluster/other-crds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A module with its version, and the file of the CRD in it.
modules=(
  github.com/kedacore/keda/v2@v2.21.0:config/crd/bases/keda.sh_scaledobjects.yaml
  github.com/argoproj/argo-cd/v2@v2.14.21:manifests/crds/application-crd.yaml
  github.com/fluxcd/kustomize-controller@v1.9.0:config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml
)
folder=$PWD/.cluster/other-crds
list=$(printf '%s\n' "${modules[@]}")

if [ "$(cat "$folder/.modules" 2>/dev/null)" != "$list" ]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  for module in "${modules[@]}"; do
    echo "downloading ${module%%:*} for its CRD" >&2
    root=$(cd "$folder" && go mod download -json "${module%%:*}" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
    install -m 644 "$root/${module#*:}" "$folder/"
  done
  echo "$list" >"$folder/.modules"
fi
echo "$folder"
