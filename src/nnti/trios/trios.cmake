# SPDX-License-Identifier: BSD-3-Clause
# NNTI as Trios 12 has it (include/trios/), and its tests.
nessie_library(nessie_trios
  SOURCES
    trios/logger.cpp trios/operations.cpp trios/pack.cpp trios/print.cpp trios/requests.cpp trios/signal.cpp trios/threads.cpp
    trios/timer.cpp trios/trace.cpp trios/transports.cpp trios/xdr.cpp
  PUBLIC nessie_nnti PkgConfig::TIRPC
  PRIVATE Threads::Threads)
target_include_directories(nessie_trios PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/trios>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/trios>)

# C programs as they were written for Trios, once for each transport. 77: this machine does not have it.
add_executable(nnti_trios_two_processes_test trios/two_processes_test.c)
set_target_properties(nnti_trios_two_processes_test PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests LINKER_LANGUAGE CXX)
target_link_libraries(nnti_trios_two_processes_test PRIVATE nessie_flags nessie_trios)
foreach(transport default:11 local:7 shm:8 ofi:9)
  string(REPLACE ":" ";" transport ${transport})
  list(GET transport 0 name)
  list(GET transport 1 number)
  add_test(NAME nnti_trios_${name}_test COMMAND nnti_trios_two_processes_test ${number})
  set_tests_properties(nnti_trios_${name}_test PROPERTIES TIMEOUT 120 LABELS nnti SKIP_RETURN_CODE 77
    ENVIRONMENT "NESSIE_NNTI_OFI_ADDRESS=127.0.0.1")
endforeach()

nessie_test(nnti_trios_test SOURCES trios/trios_test.cpp trios/unpack_handles.cpp LIBS nessie_trios LABELS nnti)
nessie_fuzz(nnti_unpack_handles_fuzz SOURCES trios/unpack_handles_fuzz.cpp trios/unpack_handles.cpp LIBS nessie_trios)
