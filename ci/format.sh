#!/usr/bin/env bash
# Checks the layout of every C++ and CUDA source with clang-format; `ci/format.sh --fix` rewrites them instead.
# Exit status: 0 well formed, 1 not (names the places), 77 skipped: releases differ in what they consider right, so only the one that
# the sources are kept with is asked.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
release=14

tool=""
for candidate in "clang-format-$release" clang-format; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q "version $release\."; then
    tool=$candidate
    break
  fi
done
if [ -z "$tool" ]; then
  echo "SKIPPED: clang-format $release is not installed (Debian 12: apt-get install clang-format)"
  exit 77
fi

mapfile -d '' -t sources < <(python3 tests/house/tree.py --null .cpp .hpp .h .cu .cuh)
if [ ${#sources[@]} = 0 ]; then
  echo "no sources found below $PWD" >&2
  exit 1
fi
if [ "${1:-}" = --fix ]; then
  exec "$tool" -i "${sources[@]}"
fi
if ! found=$("$tool" --dry-run --Werror "${sources[@]}" 2>&1); then
  grep -E '^[^ ]+:[0-9]+:[0-9]+: ' <<<"$found" || echo "$found"
  echo "to mend: ci/format.sh --fix" >&2
  exit 1
fi
echo "${#sources[@]} files are well formed"
