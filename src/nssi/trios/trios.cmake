# SPDX-License-Identifier: BSD-3-Clause
# NSSI as Trios 12 has it (include/trios/), and its tests.
nessie_library(nessie_trios_nssi SEPARATE   # macros give the paper's names to some of them, Trios' to others
  SOURCES
    trios/atomics.cpp trios/client.cpp trios/common.cpp trios/daemon.cpp trios/paper.cpp trios/service.cpp trios/standard.cpp
    trios/threads.cpp trios/tracing.cpp
  PUBLIC nessie_trios nessie_nssi_c
  PRIVATE fmt::fmt)

# The paper's transfer service once more, by Trios' headers.
add_executable(nssi_trios_xfer_test xfer/xfer_test.c ${xfer_dir}/xfer_xdr.c ${xfer_dir}/xfer.h)
set_target_properties(nssi_trios_xfer_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_include_directories(nssi_trios_xfer_test PRIVATE ${xfer_dir})
target_compile_definitions(nssi_trios_xfer_test PRIVATE _GNU_SOURCE XFER_BY_TRIOS)
target_link_libraries(nssi_trios_xfer_test PRIVATE nessie_flags nessie_trios_nssi)
add_test(NAME nssi_trios_xfer_test COMMAND nssi_trios_xfer_test)
set_tests_properties(nssi_trios_xfer_test PROPERTIES TIMEOUT 120)

nessie_test(nssi_trios_test SOURCES trios/trios_test.cpp LIBS nessie_trios_nssi)
