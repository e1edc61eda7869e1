# The two kinds of targets of this project, each with the same warnings and sanitizers.

add_library(slacktier_flags INTERFACE)
target_include_directories(slacktier_flags INTERFACE ${PROJECT_SOURCE_DIR})
# nvcc passes its host code, which is full of line marks that -Wpedantic dislikes, through the compiler below it.
target_compile_options(slacktier_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>)
# GCC 12 sees overlapping copies in `"text" + std::to_string(n)` that are not there (GCC bug 105651, mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(slacktier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(SLACKTIER_WERROR)
  target_compile_options(slacktier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
# Sources that are compiled together see the names of each other.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
if(SLACKTIER_JOIN)
  set(CMAKE_UNITY_BUILD ON)
  target_compile_options(slacktier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>)
endif()
# Templates from a precompiled header are optimised in another order, in which gcc 12 sees overflows in std::string that are not there.
# What is found by optimising is an error in builds without.
if(SLACKTIER_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(warning stringop-overflow stringop-overread array-bounds maybe-uninitialized uninitialized free-nonheap-object nonnull
      use-after-free dangling-pointer format-overflow format-truncation mismatched-new-delete)
    target_compile_options(slacktier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=${warning}>)
  endforeach()
endif()
# slacktier_runtimes(SOURCE...): sources that ask which GPU runtimes this build has. Only they see it, so that a build with CUDA and HIP
# compiles all others as one without does.
function(slacktier_runtimes)
  set(runtimes)
  if(SLACKTIER_CUDA)
    list(APPEND runtimes SLACKTIER_CUDA)
  endif()
  if(SLACKTIER_HIP)
    list(APPEND runtimes SLACKTIER_HIP)
    if(SLACKTIER_HIP_ON_NVIDIA)
      list(APPEND runtimes SLACKTIER_HIP_ON_NVIDIA)
    endif()
  endif()
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS ${runtimes})
endfunction()
if(SLACKTIER_SANITIZE STREQUAL "address")
  # Undefined behaviour is looked for where bits, sizes and addresses are computed, in platforms and tier: its checks double the time to
  # compile. Null, size and type of what a pointer points to are checked at each access for as much again; the address sanitizer sees the
  # accesses that matter.
  set(_slacktier_sanitize -fsanitize=address -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<BOOL:$<TARGET_PROPERTY:SLACKTIER_UNDEFINED>>:-fsanitize=undefined;-fno-sanitize=null,object-size,vptr>)
  set(_slacktier_sanitize_link -fsanitize=address,undefined)
elseif(SLACKTIER_SANITIZE STREQUAL "thread")
  set(_slacktier_sanitize -fsanitize=thread -fno-omit-frame-pointer)
  set(_slacktier_sanitize_link -fsanitize=thread)
elseif(SLACKTIER_SANITIZE)
  message(FATAL_ERROR "SLACKTIER_SANITIZE is '${SLACKTIER_SANITIZE}': use address, thread or nothing")
endif()
if(_slacktier_sanitize)
  # gcc: "-fsanitize flags can lead to false positive warnings"; the other presets keep this one.
  list(APPEND _slacktier_sanitize $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_options(slacktier_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_slacktier_sanitize}>")
  target_link_options(slacktier_flags INTERFACE ${_slacktier_sanitize_link})
endif()

# slacktier_precompile(TARGET KIND LIBS...): the large headers of the libraries, compiled once for all targets of one kind, which are
# compiled with the same options: what the first of them has. LIBS: whose headers they are. The sources include what they use all the
# same: without SLACKTIER_PCH nothing may be missing.
set(_slacktier_headers <algorithm> <array> <atomic> <charconv> <cmath> <condition_variable> <filesystem> <fstream> <functional> <map>
  <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <unordered_map> <variant> <vector>
  <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
function(slacktier_precompile target kind)
  if(NOT SLACKTIER_PCH)
    return()
  endif()
  set(owner slacktier_headers_${kind})
  if(NOT TARGET ${owner})
    set(empty ${CMAKE_BINARY_DIR}/empty.cpp)
    if(NOT EXISTS ${empty})
      file(WRITE ${empty} "// The one source of targets that only precompile headers.\n")
    endif()
    add_library(${owner} STATIC ${empty})
    target_link_libraries(${owner} PRIVATE slacktier_flags fmt::fmt nlohmann_json::nlohmann_json ${ARGN})
    foreach(property COMPILE_OPTIONS POSITION_INDEPENDENT_CODE SLACKTIER_UNDEFINED)
      get_target_property(value ${target} ${property})
      if(value)
        set_property(TARGET ${owner} PROPERTY ${property} "${value}")
      endif()
    endforeach()
    set(headers ${_slacktier_headers})
    if(kind MATCHES "^program")
      list(APPEND headers <CLI/CLI.hpp>)
    elseif(kind STREQUAL "test")
      list(APPEND headers ${PROJECT_SOURCE_DIR}/tests/catch.hpp)
    endif()
    foreach(header IN LISTS headers)
      target_precompile_headers(${owner} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
    endforeach()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# slacktier_room(NAME LIBS...): the static library of one folder, from every .cpp below it except cli/ (its program). What lies in a
# folder gpu/, and every .cu, belongs to it where CUDA is built.
function(slacktier_room name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "(^|/)cli/")
  set(kernels)
  if(SLACKTIER_CUDA)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
    list(APPEND sources ${kernels})
  else()
    list(FILTER sources EXCLUDE REGEX "(^|/)gpu/")
  endif()
  if(NOT sources)  # headers only
    add_library(slacktier_${name} INTERFACE)
    target_link_libraries(slacktier_${name} INTERFACE slacktier_flags ${ARGN})
    return()
  endif()
  add_library(slacktier_${name} STATIC ${sources})
  set_target_properties(slacktier_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # The HIP plug-in has these for its own runtime: what it takes from this library may not bring them along.
  list(FILTER sources INCLUDE REGEX "(^|/)gpu/")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION TRUE)
  if(SLACKTIER_SANITIZE STREQUAL "address" AND name MATCHES "^(platforms|tier)$")
    set_property(TARGET slacktier_${name} PROPERTY SLACKTIER_UNDEFINED TRUE)
  endif()
  target_link_libraries(slacktier_${name} PUBLIC slacktier_flags ${ARGN} $<$<BOOL:${kernels}>:CUDA::cudart_static>)
  get_target_property(undefined slacktier_${name} SLACKTIER_UNDEFINED)
  if(undefined)
    slacktier_precompile(slacktier_${name} library_undefined)
  else()
    slacktier_precompile(slacktier_${name} library)
  endif()
endfunction()

# All programs and nothing else, for who wants to run rather than test.
add_custom_target(programs)

# slacktier_program(NAME LIBS...): the program slacktier-NAME, from every .cpp in cli/; from main.cpp alone where the rest is a library,
# slacktier_NAME_program.
function(slacktier_program name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cli/*.cpp)
  if(TARGET slacktier_${name}_program)
    set(sources ${CMAKE_CURRENT_SOURCE_DIR}/cli/main.cpp)
  endif()
  add_executable(slacktier-${name} ${sources})
  target_link_libraries(slacktier-${name} PRIVATE slacktier_flags $<TARGET_NAME_IF_EXISTS:slacktier_${name}_program> ${ARGN})
  # Option parsing: the compiler takes many seconds a file to optimise what runs once.
  target_compile_options(slacktier-${name} PRIVATE -O0)
  slacktier_precompile(slacktier-${name} program CLI11::CLI11)
  add_dependencies(programs slacktier-${name})
  set_property(GLOBAL APPEND PROPERTY SLACKTIER_PROGRAMS slacktier-${name})
  install(TARGETS slacktier-${name})
endfunction()
