#!/usr/bin/env bash
# From a fresh clone to the first result: installs what is missing, builds slacktier-harness alone, runs the campaign `quickstart`.
# Only the result goes to stdout. Further arguments are passed on: ci/quickstart.sh --seed 7
#   SLACKTIER_SCRATCH   where the campaign stages its image and leaves its results: a directory on the disk to be measured (default build/scratch)
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

ci/setup.sh
cmake --preset cpu -DSLACKTIER_JOIN=ON >&2  # half the time of a build from nothing
cmake --build --preset cpu --target slacktier-harness -j "$(nproc)" >&2

exec build/cpu/bin/slacktier-harness run quickstart --scratch "${SLACKTIER_SCRATCH:-build/scratch}" "$@"
