# SPDX-License-Identifier: BSD-3-Clause
# The C interface of the Nessie paper, section 4.1, and its tests.
target_sources(nessie_nnti PRIVATE c/api.cpp c/handles.cpp c/wait.cpp c/face.cpp)
target_link_libraries(nessie_nnti PRIVATE PkgConfig::TIRPC)
set_source_files_properties(c/api.cpp c/handles.cpp c/wait.cpp c/face.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)   # only their users need libtirpc, and all that it brings

nessie_test(nnti_c_api_test
  SOURCES c/api_test.cpp c/header_test.c
  LIBS nessie_nnti PkgConfig::TIRPC
  LABELS nnti)
