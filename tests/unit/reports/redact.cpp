#include "reports/results.hpp"
#include "reports/sha256.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

TEST_CASE("identities are hidden wherever they stand", "[redact]") {
  Json value = {
      {"host", {{"hostname", "gpu07"}, {"cpu", "AMD EPYC 9554"}}},
      {"disks", {{{"path", "/dev/nvme0n1"}, {"Serial-Number", "S6CKNE0T900123"}, {"model", "SAMSUNG"}}}},
      {"argv", {"slacktier-harness", "--connect", "gpu07:4321", "--disk=/mnt/fast/engram.img", "--trace", "/srv/a b"}},
      {"note", "read S6CKNE0T900123 on gpu07 (/dev/nvme0n1), not gpu071; 3 pages/step, 1/R"}};
  redact(value);
  const auto hidden = [](const std::string& text) { return "sha256:" + sha256_hex(text).substr(0, 12); };
  CHECK(value["host"]["hostname"] == hidden("gpu07"));
  CHECK(value["host"]["cpu"] == "AMD EPYC 9554");
  CHECK(value["disks"][0]["Serial-Number"] == hidden("S6CKNE0T900123"));
  CHECK(value["disks"][0]["model"] == "SAMSUNG");
  CHECK(value["argv"][2] == hidden("gpu07") + ":4321");
  CHECK(value["argv"][3] == "--disk=" + hidden("/mnt/fast/engram.img"));
  CHECK(value["note"] == "read " + hidden("S6CKNE0T900123") + " on " + hidden("gpu07") + " (" + hidden("/dev/nvme0n1") +
                             "), not gpu071; 3 pages/step, 1/R");
  const Json once = value;
  redact(value);
  CHECK(value == once);
}

TEST_CASE("a salt changes what stands for an identity", "[redact]") {
  Json a = {{"hostname", "gpu07"}}, b = a, c = a;
  redact(a, "x");
  redact(b, "y");
  redact(c, "x");
  CHECK(a != b);
  CHECK(a == c);
}

TEST_CASE("a redacted file still is one, and names nobody", "[redact]") {
  for (const char* kind : {"windows", "reads", "misses", "placement", "results"}) {
    CAPTURE(kind);
    Envelope envelope = read_envelope(example_path(kind));
    envelope.warnings.push_back({"disk", "bench-7: /dev/nvme0n1 (S6CKNE0T900123) is warm", ""});
    redact(envelope, "salt");
    const std::string text = to_text(envelope);
    for (const char* secret : {"bench-7", "S6CKNE0T900123", "/dev/", "nvme0n1"}) {
      CAPTURE(secret);
      CHECK(text.find(secret) == std::string::npos);
    }
    const Envelope read = parse_envelope(text, "redacted");
    CHECK(read.provenance["redacted"] == true);
    CHECK(read.provenance["commit"] == envelope.provenance["commit"]);
  }
  // Sample files keep their names: readers need them.
  Envelope results = read_envelope(example_path("results"));
  redact(results);
  CHECK(results.results[0]["samples"]["file"] == "agent-0.npy");
}
