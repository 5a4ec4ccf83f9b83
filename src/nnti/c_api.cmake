# SPDX-License-Identifier: BSD-3-Clause
# The C interface of the Nessie paper, section 4.1, and its tests.
target_sources(nessie_nnti PRIVATE c_api.cpp c_api_handles.cpp c_api_wait.cpp face.cpp)
target_link_libraries(nessie_nnti PRIVATE PkgConfig::TIRPC)
set_source_files_properties(c_api_handles.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)   # only its users need libtirpc

nessie_test(nnti_c_api_test
  SOURCES c_api_test.cpp c_api_header_test.c
  LIBS nessie_nnti PkgConfig::TIRPC
  LABELS nnti)
