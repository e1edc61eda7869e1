// Validation by JSON Schema (draft 2020-12), for the keywords that reports/schemas uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/json.hpp"

namespace slacktier {

struct SchemaProblem {
  std::string pointer;  // RFC 6901 pointer of the offending value ("" is the whole document)
  std::string message;  // in words, without the pointer: "must be at least 1, is 0"
};

struct SchemaOptions {
  bool allow_unknown_fields = false;  // take additionalProperties: false for true, as for a file of a newer minor version
};

// All that is wrong with `document`, in document order; empty: it is valid. Keywords: type, required, properties,
// patternProperties, additionalProperties, items, minItems, enum, pattern, minimum, maximum, oneOf, $ref to #/$defs/…, and
// the annotations $schema, $id, $defs, title, description. Any other keyword throws std::logic_error: it would be ignored
// silently. A oneOf of which no branch holds reports the problems of the branch that came nearest.
std::vector<SchemaProblem> validate(const Json& schema, const Json& document, SchemaOptions options = {});

// Kinds of result files, in pipeline order, and the schema of one of them. Throws InputError naming the kinds there are.
std::vector<std::string> schema_kinds();
const Json& schema_for(std::string_view kind);

}  // namespace slacktier
