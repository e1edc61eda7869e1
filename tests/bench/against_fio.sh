#!/usr/bin/env bash
# slacktier-iobench beside fio on the same file, in alternating runs: wall time of a batch at one thread, pages a second at N threads,
# and CPU per page where the page cache holds the file. Prints a Markdown table of ratios; run it on a quiet machine.
#   tests/bench/against_fio.sh [options of against_fio.py]      --help lists them
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
fio=${FIO:-fio}
bin=${SLACKTIER_BIN:-$here/../../build/cpu/bin}
if ! command -v "$fio" >/dev/null; then
  echo "against_fio: there is no fio here: apt-get install fio, or name one: FIO=/path/to/fio $0" >&2
  exit 3
fi
if [ ! -x "$bin/slacktier-iobench" ]; then
  echo "against_fio: $bin/slacktier-iobench is not there: build the preset cpu, or set SLACKTIER_BIN" >&2
  exit 3
fi
exec python3 -B "$here/against_fio.py" --fio "$(command -v "$fio")" --program "$bin/slacktier-iobench" "$@"
