#!/usr/bin/env bash
# Everything that must pass: set-up, build and all tests with the cpu preset, the GPU runtimes that can be built here, then the unit
# tests under the address and undefined-behaviour sanitizers, and those of rooms with threads under the thread sanitizer. Goes on after a failed stage, prints
# each stage's time and, last, ctest's closing line of the cpu preset. Exit status: 0 when every stage passed, 1 otherwise (3: set-up lacks something).
#   SLACKTIER_JOBS   parallel compilations (default: one per CPU)
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
exec </dev/null

jobs=${SLACKTIER_JOBS:-$(nproc)}
summary=()
failed=()

# stage NAME COMMAND...: runs it, keeps its time and whether it passed.
stage() {
  local name=$1 began=$SECONDS status=0
  shift
  printf '\n==> %s\n' "$name"
  "$@" || status=$?
  summary+=("$(printf '%-14s %5d s  %s' "$name" $((SECONDS - began)) "$([ $status = 0 ] && echo passed || echo "FAILED ($status)")")")
  [ $status = 0 ] || failed+=("$name")
  return $status
}

build() {  # PRESET [TARGET...]
  local preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}

all_tests() {
  mkdir -p build/cpu && ctest --preset cpu --no-tests=error -j "$(nproc)" 2>&1 | tee build/cpu/ctest.log
}

# The GPU runtimes that can be built here: CUDA where nvcc is, HIP where its packages can be had. One architecture of NVIDIA's and its
# PTX do: the others differ in nothing that a compiler of one does not see. Only what a GPU build has and the cpu preset has not is built
# and tested; tests on a GPU skip where there is none.
build_cuda() {
  cmake --preset cuda -DSLACKTIER_CUDA_ARCHS=90 && cmake --build --preset cuda -j "$jobs" --target test_gpu bench_gpu
}
test_cuda() {
  ctest --preset cuda --no-tests=error -R '^gpu\.(device|graph|tier_kernels)$'
}
build_hip() {
  build hip slacktier_hip slacktier_hip_resolved slacktier_hip_tests slacktier-probe
}
test_hip() {
  ctest --preset hip --no-tests=error -L '^hip$'
}

# Unit tests only: the sanitizers slow tests of whole sessions by an order of magnitude and would see no new code there.
unit_tests() {
  ctest --preset "$1" --no-tests=error -L unit -LE sessions -j "$(nproc)"
}

# The thread sanitizer looks at the rooms that start threads and share memory between them, and leaves out those tests of theirs that
# run on one thread; the others would only cost time.
threaded=(platforms tier)
single='^tier\.(policies|step_model|directory|checkpoint|checkpoint_fuzz|hash|rows|control|primes|pages|table)$'

# gcc 12's thread sanitizer ends at start-up where the kernel randomises addresses over more bits than it expects; without
# randomisation it runs everywhere. Where a container forbids setarch, it has to run as it is.
thread_tests() {
  local run=(ctest --preset tsan --no-tests=error -L unit -LE sessions -R "^($(IFS='|'; echo "${threaded[*]}"))\\." -E "$single" -j "$(nproc)")
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    setarch "$(uname -m)" -R "${run[@]}"
  else
    "${run[@]}"
  fi
}

stage "set-up" ci/setup.sh || exit $?
closing="cpu: nothing was tested, its build failed"
if stage "build cpu" build cpu; then
  stage "test cpu" all_tests
  closing=$(grep 'tests passed' build/cpu/ctest.log || echo "cpu: ctest ended early, see build/cpu/ctest.log")
fi
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  if stage "build cuda" build_cuda; then stage "test cuda" test_cuda; fi
fi
if ci/setup_hip.sh; then
  if stage "build hip" build_hip; then stage "test hip" test_hip; fi
fi
if stage "build asan" build asan unit_tests; then stage "test asan" unit_tests asan; fi
if stage "build tsan" build tsan "${threaded[@]/#/test_}"; then stage "test tsan" thread_tests; fi

printf '\n'
printf '%s\n' "${summary[@]}"
printf '%-14s %5d s\n' total $SECONDS
if [ ${#failed[@]} != 0 ]; then printf 'failed stages: %s\n' "$(IFS=,; echo "${failed[*]}")"; fi
printf '%s\n' "$closing"
[ ${#failed[@]} = 0 ]
