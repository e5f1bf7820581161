#!/usr/bin/env bash
# MRS from monthly dumps on a Slurm cluster: a task per month, then one job that joins, cleans and writes.
#
#   DUMPS='/data/dumps/RC_2018-*.zst' OUT=/data/mrs BUCKETS=512 deploy/slurm/submit.sh --profile clean
#
# DUMPS and OUT are on a disk that all nodes see. BUCKETS: as `mrs data build --plan` prints them for the last job's
# CPUS and MEMORY (GB). Further arguments are options of `mrs data build`, the same for all. docs/scale.md has times.
set -euo pipefail

: "${DUMPS:?a pattern of monthly dumps}" "${OUT:?the folder to write}" "${BUCKETS:?parts of the join}"
export DUMPS OUT BUCKETS CPUS="${CPUS:-8}" MEMORY="${MEMORY:-32}"
here=$(cd "$(dirname "$0")" && pwd)
mapfile -t files < <(compgen -G "$DUMPS")
if ((${#files[@]} == 0)); then
  echo "DUMPS=$DUMPS: no such file." >&2
  exit 2
fi
months=$(sbatch --parsable --array="0-$((${#files[@]} - 1))%${AT_ONCE:-24}" "$here/month.sbatch" "$@")
sbatch --dependency="afterok:${months%%;*}" --cpus-per-task="$CPUS" --mem="$((MEMORY + 2))G" "$here/finish.sbatch" "$@"
