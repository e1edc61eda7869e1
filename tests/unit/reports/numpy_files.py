"""numpy's side of the .npy test: checks the files in the folder given that we wrote, and writes some for us to read.

Exits 77 without numpy.
"""

import json
import pathlib
import sys

try:
    import numpy
except ImportError:
    sys.exit(77)

folder = pathlib.Path(sys.argv[1])
samples = numpy.load(folder / "ours_f8.npy", allow_pickle=False)
expected = json.loads((folder / "expected.json").read_text())
assert samples.dtype == "<f8" and samples.shape == (1000,)
assert abs(samples.mean() - expected["mean"]) < 1e-12
assert numpy.percentile(samples, 50, method="inverted_cdf") == expected["p50"]
assert numpy.percentile(samples, 99, method="inverted_cdf") == expected["p99"]
assert numpy.load(folder / "ours_f4.npy").tolist() == [[0.5, 1, 2], [3, 4, -5]]
assert numpy.load(folder / "ours_f4.npy").dtype == "<f4"
assert numpy.load(folder / "ours_i8.npy").tolist() == [1, -2, 1 << 62]
numpy.load(folder / "ours_f8.npy", mmap_mode="r")

squares = numpy.arange(20.0).reshape(4, 5) ** 2
numpy.save(folder / "theirs_f8.npy", squares)
numpy.save(folder / "theirs_f4.npy", numpy.array([0.25, -1], "<f4"))
numpy.save(folder / "theirs_i8.npy", numpy.array([7, -9], "<i8"))
with open(folder / "theirs_v2.npy", "wb") as file:
    numpy.lib.format.write_array(file, numpy.array([1.0, 2, 3]), version=(2, 0))
numpy.save(folder / "fortran.npy", numpy.asfortranarray(squares))
numpy.save(folder / "big_endian.npy", squares.astype(">f8"))
numpy.save(folder / "scalar.npy", numpy.float64(1))
numpy.save(folder / "objects.npy", numpy.array([{}], object), allow_pickle=True)
numpy.save(folder / "int32.npy", numpy.array([1], "<i4"))
