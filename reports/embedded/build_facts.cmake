# Writes OUTPUT, a C++ source that defines slacktier::build_facts(): VERSION and the commit of the source tree ROOT. COMMIT stands
# in where there is no git. An unchanged file is left alone, so that nothing is compiled again.
set(commit "unknown")
set(dirty "false")
find_program(GIT git)
set(found 1)
if(GIT AND EXISTS "${ROOT}/.git")
  execute_process(COMMAND ${GIT} -C ${ROOT} rev-parse HEAD OUTPUT_VARIABLE head RESULT_VARIABLE found
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(found EQUAL 0)
  set(commit ${head})
  execute_process(COMMAND ${GIT} -C ${ROOT} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(dirty "true")
  endif()
elseif(COMMIT)
  set(commit ${COMMIT})
endif()
set(text "#include \"reports/embedded/build_facts.hpp\"\n
namespace slacktier {\n
BuildFacts build_facts() { return {\"${VERSION}\", \"${commit}\", ${dirty}}; }\n
}  // namespace slacktier\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE "${OUTPUT}" "${text}")
endif()
