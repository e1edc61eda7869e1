# Turns HIP on, as a plug-in beside the programs: libslacktier_hip.so holds device, gates and the kernels of every room. It names no
# HIP runtime to be loaded; the program binds it to the libamdhip64 that is there (platforms/hip_plugin.cpp), so programs start without.
#
# A ROCm: -DSLACKTIER_ROCM_ROOT=/opt/rocm. Else Debian's packages (clang-19 lld-19 clang-tools-19 libamdhip64-dev rocm-device-libs), of
# which a small ROCm root of links is laid out, with the bitcode for gfx942 that they lack. -DSLACKTIER_HIP_ON_NVIDIA=ON builds the same
# sources with nvcc through HIP's NVIDIA headers: hip:0 is then an NVIDIA GPU, so that the host side of HIP can be run without an AMD one.
set(SLACKTIER_HIP_ARCHS "gfx942;gfx90a" CACHE STRING "AMD architectures")
set(SLACKTIER_ROCM_ROOT "" CACHE PATH "ROCm to build with; empty: Debian's packages")
option(SLACKTIER_HIP_ON_NVIDIA "Build the HIP sources for NVIDIA GPUs, for tests" OFF)

file(GLOB _hip_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/platforms/gpu/*.cpp)
list(APPEND _hip_sources ${PROJECT_SOURCE_DIR}/tier/kernels/modules.cpp ${PROJECT_SOURCE_DIR}/platforms/gpu/kernels.cu
  ${PROJECT_SOURCE_DIR}/tier/kernels/gpu.cu)
set(_hip_entry ${PROJECT_SOURCE_DIR}/tier/kernels/hip_plugin.cpp)
set(_hip_test_entry ${PROJECT_SOURCE_DIR}/tests/gpu/plugin/hip_plugin.cpp ${PROJECT_SOURCE_DIR}/tests/gpu/kernels.cu)

if(SLACKTIER_HIP_ON_NVIDIA)
  find_program(SLACKTIER_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin REQUIRED)
  find_path(SLACKTIER_HIP_INCLUDE hip/hip_runtime.h REQUIRED)
  set(SLACKTIER_HIP_NVIDIA_ARCH "90" CACHE STRING "NVIDIA architecture that the HIP sources are built for")
  get_filename_component(_cuda_root ${SLACKTIER_NVCC}/../.. REALPATH)
  set(_hip_flags -std=c++20 -O3 -D__HIP_PLATFORM_NVIDIA__ -include ${PROJECT_SOURCE_DIR}/tests/gpu/hip_on_cuda.hpp)
  if(NOT SLACKTIER_HIP_INCLUDE STREQUAL "/usr/include")  # that one is searched anyhow, and may not be put in front of the compiler's
    list(APPEND _hip_flags -isystem ${SLACKTIER_HIP_INCLUDE})
  endif()
  set(_hip_host ${CMAKE_CXX_COMPILER} -fPIC -fvisibility=hidden -isystem ${_cuda_root}/include ${_hip_flags})
  set(_hip_device ${SLACKTIER_NVCC} -x cu -Xcompiler=-fPIC,-fvisibility=hidden -arch=sm_${SLACKTIER_HIP_NVIDIA_ARCH}
    -diag-suppress=20012,20208,2810 ${_hip_flags})
else()
  if(SLACKTIER_ROCM_ROOT)
    set(_hip_root ${SLACKTIER_ROCM_ROOT})
    set(_clang ${SLACKTIER_ROCM_ROOT}/llvm/bin/clang++)
    find_library(SLACKTIER_AMDHIP64 amdhip64 REQUIRED HINTS ${SLACKTIER_ROCM_ROOT}/lib)
  else()
    find_program(SLACKTIER_HIP_CLANG NAMES clang++-19 clang++-18 clang++-17 REQUIRED)
    file(REAL_PATH ${SLACKTIER_HIP_CLANG} _clang)
    find_path(SLACKTIER_AMD_BITCODE ocml.bc REQUIRED PATHS /usr/lib/x86_64-linux-gnu/amdgcn/bitcode /usr/lib/amdgcn/bitcode NO_DEFAULT_PATH)
    find_path(SLACKTIER_HIP_INCLUDE hip/hip_runtime.h REQUIRED)
    find_library(SLACKTIER_AMDHIP64 amdhip64 REQUIRED)
    set(_hip_root ${CMAKE_BINARY_DIR}/rocm-root)
    file(MAKE_DIRECTORY ${_hip_root}/amdgcn/bitcode ${_hip_root}/share ${_hip_root}/lib)
    file(GLOB _bitcode ${SLACKTIER_AMD_BITCODE}/*.bc)
    foreach(file IN LISTS _bitcode)
      get_filename_component(name ${file} NAME)
      file(CREATE_LINK ${file} ${_hip_root}/amdgcn/bitcode/${name} SYMBOLIC)
    endforeach()
    if(NOT EXISTS ${_hip_root}/amdgcn/bitcode/oclc_isa_version_942.bc)
      file(WRITE ${_hip_root}/isa942.ll
"target triple = \"amdgcn-amd-amdhsa\"
@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 9402, align 4
")
      execute_process(COMMAND ${_clang} --target=amdgcn-amd-amdhsa -nogpulib -x ir -c -emit-llvm ${_hip_root}/isa942.ll
        -o ${_hip_root}/amdgcn/bitcode/oclc_isa_version_942.bc COMMAND_ERROR_IS_FATAL ANY)
    endif()
    file(CREATE_LINK /usr/share/hip ${_hip_root}/share/hip SYMBOLIC)
    file(CREATE_LINK ${SLACKTIER_HIP_INCLUDE} ${_hip_root}/include SYMBOLIC)
    file(CREATE_LINK ${SLACKTIER_AMDHIP64} ${_hip_root}/lib/libamdhip64.so SYMBOLIC)
  endif()
  set(_hip_flags ${_clang} -std=c++20 -O3 -fPIC -fvisibility=hidden -D__HIP_PLATFORM_AMD__ -Wall -Wextra -Wshadow -Wno-unused-result)  # hipError_t is nodiscard, cudaError_t is not
  set(_hip_host ${_hip_flags} -x c++)
  if(SLACKTIER_ROCM_ROOT)
    list(APPEND _hip_host -isystem ${_hip_root}/include)
  endif()
  set(_hip_device ${_hip_flags} -x hip --rocm-path=${_hip_root} -Wno-unused-command-line-argument -Rpass-analysis=kernel-resource-usage)
  foreach(arch IN LISTS SLACKTIER_HIP_ARCHS)
    list(APPEND _hip_device --offload-arch=${arch})
  endforeach()
endif()

# The object of one source as HIP. What the compiler says of registers and spills stands beside it, in .usage.
function(_slacktier_hip_object source result)
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
  string(REPLACE "/" "_" name ${name})
  set(object ${CMAKE_BINARY_DIR}/hip/${name}.o)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/hip)
  set(kind ${_hip_device})
  if(source MATCHES "\\.cpp$")
    set(kind ${_hip_host})
  endif()
  set(warnings -Werror)
  if(SLACKTIER_HIP_ON_NVIDIA OR NOT SLACKTIER_WERROR)
    set(warnings)
  endif()
  add_custom_command(OUTPUT ${object}
    COMMAND sh -c "$* 2> ${object}.usage || { cat ${object}.usage >&2; exit 1; }" hip ${kind} ${warnings} -DSLACKTIER_GPU_HIP
      -I${PROJECT_SOURCE_DIR} -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "Building HIP object ${name}.o")
  set(${result} ${object} PARENT_SCOPE)
endfunction()

function(_slacktier_hip_plugin target)
  set(objects)
  foreach(source IN LISTS ARGN)
    _slacktier_hip_object(${source} object)
    list(APPEND objects ${object})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(${target} MODULE ${objects})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  target_link_libraries(${target} PRIVATE slacktier_flags slacktier_platforms)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/plugin.map" LINKER:--exclude-libs,ALL)
endfunction()

# What ships, and the same with the tests' kernels besides.
_slacktier_hip_plugin(slacktier_hip ${_hip_sources} ${_hip_entry})
if(SLACKTIER_HIP_ON_NVIDIA)
  set(_hip_runtime ${_cuda_root}/lib64/libcudart_static.a rt ${CMAKE_DL_LIBS} Threads::Threads)
  target_link_libraries(slacktier_hip PRIVATE ${_hip_runtime})
endif()
add_dependencies(programs slacktier_hip)
install(TARGETS slacktier_hip LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR})

if(BUILD_TESTING)
  _slacktier_hip_plugin(slacktier_hip_tests ${_hip_sources} ${_hip_test_entry})
  if(SLACKTIER_HIP_ON_NVIDIA)
    target_link_libraries(slacktier_hip_tests PRIVATE ${_hip_runtime})
  else()
    # No symbol may be left that the runtime does not have.
    _slacktier_hip_plugin(slacktier_hip_resolved ${_hip_sources} ${_hip_entry})
    target_link_options(slacktier_hip_resolved PRIVATE LINKER:-z,defs)
    target_link_libraries(slacktier_hip_resolved PRIVATE ${SLACKTIER_AMDHIP64})
    set_target_properties(slacktier_hip_resolved PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/hip)
  endif()
endif()
