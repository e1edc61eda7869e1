// The commands of slacktier-tier. Each adds its options to `app`; what it returns runs them and gives the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace slacktier::cli {

using Command = std::function<int()>;

Command add_stage(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_inspect(CLI::App& app);
Command add_discard(CLI::App& app);
Command add_table(CLI::App& app);
Command add_serve(CLI::App& app);
Command add_metrics(CLI::App& app);
Command add_table_rows(CLI::App& app);  // below table

// Options that commands share.
void add_disks(CLI::App& app, std::vector<std::string>& disks, const std::string& what);
void add_serials(CLI::App& app, std::vector<std::string>& serials);
void add_quiet(CLI::App& app, bool& quiet);
// --format text | json: true for json.
void add_format(CLI::App& app, bool& json);

// "1GiB", "1.5 GB", "4096": bytes, in binary (KiB to TiB) or decimal (kB to TB) units. Throws UsageError naming `option`.
std::uint64_t parse_bytes(const std::string& option, const std::string& text);
// The bytes of --page-size; make_page_geometry judges them.
std::uint32_t page_bytes_option(const std::string& text);

}  // namespace slacktier::cli
