# SPDX-License-Identifier: BSD-3-Clause

# nessie_joins_files(TARGET): its C++ may be compiled several files at once, if that is wanted. What is local to a file must
# have a name of its own then.
function(nessie_joins_files name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${NESSIE_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# nessie_library(NAME [SEPARATE] SOURCES... [PUBLIC libs...] [PRIVATE libs...]): one static floor of the house. SEPARATE: its
# files cannot be compiled as one.
function(nessie_library name)
  cmake_parse_arguments(ARG "SEPARATE" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(NOT ARG_SEPARATE)
    nessie_joins_files(${name})
  endif()
  target_link_libraries(${name} PUBLIC nessie_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# nessie_sources(VARIABLE FOLDER): the C++ files of the folder that are neither tests nor fuzz targets.
function(nessie_sources variable folder)
  file(GLOB found CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${folder}/*.cpp)
  list(FILTER found EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# nessie_test(NAME SOURCES... LIBS libs... [TIMEOUT s] [LABELS l...] [ENVIRONMENT v=...] [SHARDS n]): one GoogleTest program,
# one ctest entry; or n, NAME_1 to NAME_n, which share its tests and may run at once.
# Every test has a time limit: a test that hangs fails.
function(nessie_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;SHARDS" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NESSIE_SANITIZE)   # instrumented code is several times slower
    math(EXPR ARG_TIMEOUT "6 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  nessie_joins_files(${name})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)   # what is tested is optimised; tests compile sooner
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE nessie_flags ${ARG_LIBS} GTest::gtest GTest::gtest_main Threads::Threads)
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" ENVIRONMENT "${ARG_ENVIRONMENT}")
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND ${name})
    set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index};${ARG_ENVIRONMENT}")
  endforeach()
endfunction()

add_custom_target(fuzz)   # all fuzzers

# nessie_fuzz(NAME_fuzz SOURCES... LIBS libs... [MUTANTS n] [LABELS l...]): one fuzz target (base/testing/fuzz.hpp). The test
# NAME_fuzz_test runs it over n mutants, the same ones each time; with NESSIE_FUZZ there is libFuzzer's program NAME_fuzz, too.
function(nessie_fuzz name)
  cmake_parse_arguments(ARG "" "MUTANTS" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT ARG_MUTANTS)
    set(ARG_MUTANTS 50000)
  endif()
  set(timeout 120)
  if(NESSIE_SANITIZE)
    set(timeout 360)
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name}_test PRIVATE nessie_flags nessie_fuzz_main ${ARG_LIBS} Threads::Threads)
  add_test(NAME ${name}_test COMMAND ${name}_test ${ARG_MUTANTS})
  set_tests_properties(${name}_test PROPERTIES TIMEOUT ${timeout} LABELS "${ARG_LABELS}")
  if(NESSIE_FUZZ)
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/src/base/testing/fuzz_seeds.cpp)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    target_link_libraries(${name} PRIVATE nessie_flags ${ARG_LIBS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz ${name})
  endif()
endfunction()
