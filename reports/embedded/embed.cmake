# Writes OUTPUT, a C++ source that defines slacktier::embedded_file for the text FILES (paths below ROOT).
set(entries "")
foreach(file IN LISTS FILES)
  file(READ "${file}" text)
  file(RELATIVE_PATH name "${ROOT}" "${file}")
  string(APPEND entries "  if (name == \"${name}\") return R\"slacktier(${text})slacktier\";\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"reports/embedded/embedded.hpp\"\n\nnamespace slacktier {\n
std::string_view embedded_file(std::string_view name) {\n${entries}  return {};\n}\n\n}  // namespace slacktier\n")
