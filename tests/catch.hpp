// The one header through which tests reach Catch2, whichever major version the system has.
#pragma once

#include <cstdio>
#include <string>

#if defined(SLACKTIER_CATCH2_V2)
#include <catch2/catch.hpp>
// Matches texts that contain `part`, under one name for both versions.
inline auto contains_text(const std::string& part) { return Catch::Matchers::Contains(part); }
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
inline auto contains_text(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
#endif

// Ends a test case that cannot run here: `return skip_test("reason");`. A file whose cases passed or skipped shows as
// skipped in ctest, so cases that may skip live in a file of their own.
void skip_test(const std::string& reason);
