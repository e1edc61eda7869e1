// Quantities in messages for people.
#pragma once

#include <cstdint>
#include <string>

namespace slacktier {

// "4096 B", "3.1 GiB": binary units from 10 KiB on, one decimal below 100.
std::string bytes_text(std::uint64_t bytes);

// "3.1/7.4 GiB": both in the unit of the second.
std::string bytes_of_text(std::uint64_t part, std::uint64_t whole);

// "12 s", "3:05 min", "2:00 h" for seconds.
std::string duration_text(std::uint64_t seconds);

}  // namespace slacktier
