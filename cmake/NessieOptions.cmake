# SPDX-License-Identifier: BSD-3-Clause
# Build options, and the flags that every target of ours shares.

set(NESSIE_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, 'address,undefined' or 'thread'")
option(NESSIE_FUZZ "Build the libFuzzer programs too (needs clang)" OFF)
option(NESSIE_UNITY "Compile several source files as one: a whole build takes a third of the time" OFF)
option(NESSIE_TRIOS "Build the interface of Trios 12, for programs that were written for it" ON)
option(NESSIE_WERROR "Treat warnings as errors" OFF)

add_library(nessie_flags INTERFACE)
target_compile_options(nessie_flags INTERFACE
  -Wall -Wextra -Wpedantic -fno-math-errno -fno-semantic-interposition
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-stringop-overread>   # false where a small_vector is moved
  $<$<BOOL:${NESSIE_WERROR}>:-Werror>)
target_include_directories(nessie_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)

# What a sanitizer needs. Programs that know nothing of Nessie link it as well: the engine that is loaded into them is
# instrumented, and a sanitizer's run time must be in a program from its start.
add_library(nessie_sanitizer INTERFACE)
if(NESSIE_SANITIZE)
  target_compile_options(nessie_sanitizer INTERFACE -fsanitize=${NESSIE_SANITIZE} -fno-omit-frame-pointer -g -O1)
  target_link_options(nessie_sanitizer INTERFACE -fsanitize=${NESSIE_SANITIZE} -Wl,--export-dynamic-symbol=dlclose)
  target_sources(nessie_sanitizer INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_CURRENT_LIST_DIR}/keep_libraries.c>)
  # The run time, to be preloaded into programs that we do not build.
  if(NESSIE_SANITIZE MATCHES thread)
    set(runtime libtsan.so)
  else()
    set(runtime libasan.so)
  endif()
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${runtime}
    OUTPUT_VARIABLE NESSIE_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NESSIE_FUZZ)
  target_compile_options(nessie_sanitizer INTERFACE -fsanitize=fuzzer-no-link)   # the fuzzer sees what an input reaches
endif()
target_link_libraries(nessie_flags INTERFACE $<BUILD_INTERFACE:nessie_sanitizer>)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
