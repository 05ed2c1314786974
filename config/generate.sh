#!/usr/bin/env bash
# generate.sh [DIR]: generates the manifests of config/ (or of DIR) from the chart with its default values.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-config}
helm=${WARMPOOL_CLUSTER_BIN:-.cluster/bin}/${WARMPOOL_HELM:-helm}
# The chart's templates in each folder of config/.
declare -A templates=(
  [rbac]="serviceaccount rbac/clusterrole rbac/clusterrolebinding rbac/role rbac/rolebinding rbac/users"
  [manager]="deployment poddisruptionbudget priorityclass networkpolicy monitoring/service"
  [policies]="policies/claim-deletion policies/delete-protection policies/pod-labels"
)

for folder in "${!templates[@]}"; do
  mkdir -p "$out/$folder"
  for template in ${templates[$folder]}; do
    {
      echo "# Written by \`make config\` from charts/warmpool/templates/$template.yaml."
      "$helm" template warmpool charts/warmpool --namespace warmpool-system \
        --show-only "templates/$template.yaml" |
        sed -e '/^# Source: /d' -e '/^ *app.kubernetes.io\/managed-by: Helm$/d' -e '/^ *helm.sh\/chart: /d' \
          -e '1{/^---$/d}' -e '/^$/d'
    } >"$out/$folder/$(basename "$template").yaml"
  done
done
