# SPDX-License-Identifier: BSD-3-Clause
# Build options, and the flags that every target of ours shares.

set(NESSIE_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, 'address,undefined' or 'thread'")
option(NESSIE_WERROR "Treat warnings as errors" OFF)

add_library(nessie_flags INTERFACE)
target_compile_options(nessie_flags INTERFACE
  -Wall -Wextra -Wpedantic -fno-math-errno
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<BOOL:${NESSIE_WERROR}>:-Werror>)
target_include_directories(nessie_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
if(NESSIE_SANITIZE)
  target_compile_options(nessie_flags INTERFACE -fsanitize=${NESSIE_SANITIZE} -fno-omit-frame-pointer -g -O1)
  target_link_options(nessie_flags INTERFACE -fsanitize=${NESSIE_SANITIZE})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
