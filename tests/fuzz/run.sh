#!/usr/bin/env bash
# Runs libFuzzer on the protocol of tables in other nodes' memory, with the address sanitizer: run.sh [SECONDS] [CLANG]. Needs the cpu
# preset's build (its libraries are linked) and a clang of 14 or newer. What it finds anew lands in build/fuzz/corpus; a crash ends it
# with status 1 and leaves its input in build/fuzz.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
seconds=${1:-600}
clang=${2:-clang++}

mkdir -p build/fuzz/corpus
"$clang" -std=c++20 -O1 -g -I. -DFMT_SHARED -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
  tests/fuzz/protocol.cpp tier/remote/protocol.cpp tier/remote/server_session.cpp \
  build/cpu/tier/libslacktier_tier.a build/cpu/platforms/libslacktier_platforms.a \
  -lfmt -luring -lxxhash -lzstd -lblkid -lcrypto -libverbs -ldl -lpthread -o build/fuzz/protocol
exec build/fuzz/protocol -max_total_time="$seconds" -max_len=4096 -artifact_prefix=build/fuzz/ build/fuzz/corpus tests/fuzz/corpus/protocol
