#include "reports/table.hpp"

#include "reports/error.hpp"
#include "reports/json.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

Table sample() {
  Table table;
  table.title = "Reads";
  table.head = {"windows: the paper's 4xH200, not this machine"};
  table.columns = {{"source", "", Align::left, "", 14},
                   {"submit", "µs", Align::right, ""},
                   {"change", "%", Align::right, ""},
                   {"pages", "", Align::right, "n"}};
  Cell marked = Cell::number(-0.04, 1, true);
  marked.mark = "*";
  table.rows = {{"uring", Cell::number(12.346), Cell::number(6.4, 1, true), Cell::count(700)},
                {"käse, \"raw\"|x and more", Cell(), marked, Cell::count(-3)}};
  table.footnotes = {"* within noise"};
  return table;
}

}  // namespace

TEST_CASE("a table as text", "[table]") {
  CHECK(render(sample(), TableFormat::text) ==
        "Reads\n"
        "windows: the paper's 4xH200, not this machine\n"
        "\n"
        "source         submit  change  pages\n"
        "                   µs       %\n"
        "-------------  ------  ------  -----\n"
        "uring           12.35    +6.4    700\n"
        "käse, \"raw\"|x       –    0.0*     -3\n"
        "  and more\n"
        "\n"
        "* within noise\n");
}

TEST_CASE("a table as Markdown", "[table]") {
  CHECK(render(sample(), TableFormat::markdown) ==
        "**Reads**\n"
        "\n"
        "- windows: the paper's 4xH200, not this machine\n"
        "\n"
        "| source | submit (µs) | change (%) | pages |\n"
        "| :--- | ---: | ---: | ---: |\n"
        "| uring | 12.35 | +6.4 | 700 |\n"
        "| käse, \"raw\"\\|x and more | – | 0.0\\* | -3 |\n"
        "\n"
        "\\* within noise\n");
}

TEST_CASE("a table as CSV", "[table]") {
  CHECK(render(sample(), TableFormat::csv) ==
        "source,submit_us,change_pct,n\r\n"
        "uring,12.346,6.4,700\r\n"
        "\"käse, \"\"raw\"\"|x and more\",,-0.04,-3\r\n");
}

TEST_CASE("a table as JSON", "[table]") {
  const Json document = parse_json(render(sample(), TableFormat::json), "table");
  CHECK(
      document.dump() ==
      R"({"title":"Reads","head":["windows: the paper's 4xH200, not this machine"],)"
      R"("columns":[{"key":"source","header":"source","unit":""},{"key":"submit_us","header":"submit","unit":"µs"},)"
      R"({"key":"change_pct","header":"change","unit":"%"},{"key":"n","header":"pages","unit":""}],)"
      R"("rows":[{"source":"uring","submit_us":12.346,"change_pct":6.4,"n":700},)"
      R"({"source":"käse, \"raw\"|x and more","submit_us":null,"change_pct":-0.04,"n":-3}],"footnotes":["* within noise"]})");
}

TEST_CASE("tables that do not fit together are refused", "[table]") {
  Table table = sample();
  table.rows[0].pop_back();
  CHECK_THROWS_AS(render(table, TableFormat::text), std::logic_error);
  table = sample();
  table.columns[3].key = "source";
  CHECK_THROWS_AS(render(table, TableFormat::json), std::logic_error);
  CHECK_THROWS_WITH(parse_table_format("xml"), contains_text("use table, md, csv or json"));
  CHECK(parse_table_format("md") == TableFormat::markdown);
}

TEST_CASE("an empty table still has its header", "[table]") {
  Table table;
  table.columns = {{"a", "", Align::left, ""}, {"b", "", Align::right, ""}};
  CHECK(render(table, TableFormat::text) == "a  b\n-  -\n");
  CHECK(render(table, TableFormat::csv) == "a,b\r\n");
}
