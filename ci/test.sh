#!/usr/bin/env bash
# Everything that must pass: set-up, build and all tests with the cpu preset and the GPU runtimes that can be built here, then unit tests under
# the address and undefined-behaviour sanitizers and under the thread sanitizer (tests/CMakeLists.txt says which). Goes on after a failed
# stage, prints each stage's time and, last, ctest's closing line of the cpu preset. Exit status: 0 when every stage passed, 1 otherwise (3: set-up lacks something).
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

# build PRESET [CMAKE OPTION...]; under a sanitizer the unit tests alone. Several sources are compiled at a time, which takes half as long.
# Two of them may give one name to different things, and a compiler may take offence at a precompiled header; neither is a fault: then
# all is compiled once more the plain way, as who builds by hand does.
build() {
  local preset=$1 target=()
  shift
  [ "$preset" = cpu ] || target=(--target unit_tests)
  cmake --preset "$preset" -DSLACKTIER_JOIN=ON "$@" || return
  cmake --build --preset "$preset" -j "$jobs" "${target[@]}" && return
  printf '\n%s: once more, all sources by themselves and without precompiled headers\n' "$preset"
  cmake --preset "$preset" -DSLACKTIER_JOIN=OFF -DSLACKTIER_PCH=OFF && cmake --build --preset "$preset" -j "$jobs" "${target[@]}"
}

# run_tests PRESET [CTEST OPTION...]. A test that fails is started once more, since some wait for things that a machine with other work may
# delay for seconds; which passed only then is said at the end, and is a reason to look at them.
run_tests() {
  local preset=$1 status=0 log=build/$1/ctest.log
  shift
  mkdir -p "build/$preset"
  "${no_randomisation[@]}" ctest --preset "$preset" --no-tests=error -j "$(nproc)" --repeat until-pass:2 "$@" 2>&1 | tee "$log" || status=$?
  # A failed attempt's line stands in the log whatever came of it; ctest's closing list has the tests that failed for good.
  sed -n 's/.*Test *#[0-9]*: *\([^ ]*\) .*\*\*\*[FTE][a-z]*.*/\1/p' "$log" | sort -u | while read -r name; do
    grep -q "^[[:space:]]*[0-9]* - $name (" "$log" || printf '%s: %s\n' "$preset" "$name"
  done >>"$unsteady"
  return $status
}
no_randomisation=()
unsteady=$(mktemp)
trap 'rm -f "$unsteady"' EXIT

# gcc 12's thread sanitizer ends at start-up where the kernel randomises addresses over more bits than it expects; without
# randomisation it runs everywhere. Where a container forbids setarch, it has to run as it is.
thread_tests() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then no_randomisation=(setarch "$(uname -m)" -R); fi
  run_tests tsan -L unit
}

stage "set-up" ci/setup.sh || exit $?
ci/setup_guest.sh || true  # without it the tests in a virtual machine are skipped, and say so
closing="cpu: nothing was tested, its build failed"
# The GPU runtimes that can be built here, into the same tree: CUDA where nvcc is, HIP where its packages can be had. One architecture of
# NVIDIA's and its PTX do: the others differ in nothing that a compiler of one does not see. Tests on a GPU skip where there is none.
runtimes=(-DSLACKTIER_CUDA=OFF -DSLACKTIER_HIP=OFF)
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then runtimes[0]="-DSLACKTIER_CUDA=ON"; runtimes+=(-DSLACKTIER_CUDA_ARCHS=90); fi
if ci/setup_hip.sh; then runtimes[1]="-DSLACKTIER_HIP=ON"; fi

if stage "build cpu" build cpu "${runtimes[@]}"; then
  stage "test cpu" run_tests cpu
  closing=$(grep 'tests passed' build/cpu/ctest.log || echo "cpu: ctest ended early, see build/cpu/ctest.log")
fi
if stage "build asan" build asan; then stage "test asan" run_tests asan -L unit; fi
if stage "build tsan" build tsan; then stage "test tsan" thread_tests; fi

printf '\n'
printf '%s\n' "${summary[@]}"
printf '%-14s %5d s\n' total $SECONDS
if [ -s "$unsteady" ]; then printf 'passed at the second attempt only: %s\n' "$(paste -sd, "$unsteady")"; fi
if [ ${#failed[@]} != 0 ]; then printf 'failed stages: %s\n' "$(IFS=,; echo "${failed[*]}")"; fi
printf '%s\n' "$closing"
[ ${#failed[@]} = 0 ]
