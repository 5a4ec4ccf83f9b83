# SPDX-License-Identifier: BSD-3-Clause
# The transport mpi, to be loaded by programs that are not linked to it: transport/module.hpp.
add_library(nessie_transport_mpi MODULE module.cpp)
target_link_libraries(nessie_transport_mpi PRIVATE nessie_nnti_mpi)
target_compile_definitions(nessie_transport_mpi PRIVATE NESSIE_VERSION="${PROJECT_VERSION}")
target_link_options(nessie_transport_mpi PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
set_target_properties(nessie_transport_mpi PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
install(TARGETS nessie_transport_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS nessie_transport_mpi LIBRARY DESTINATION nessie COMPONENT python EXCLUDE_FROM_ALL)   # of a wheel

include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
foreach(macro OPEN_MPI MPICH_NAME I_MPI_VERSION MVAPICH2_VERSION)
  check_symbol_exists(${macro} mpi.h NESSIE_MPI_HAS_${macro})
endforeach()
unset(CMAKE_REQUIRED_LIBRARIES)
set(flavour "")   # as what MPI_Get_library_version() says begins; empty: that is not known
if(NESSIE_MPI_HAS_OPEN_MPI)
  set(flavour "Open MPI")
elseif(NESSIE_MPI_HAS_MPICH_NAME AND NOT NESSIE_MPI_HAS_I_MPI_VERSION AND NOT NESSIE_MPI_HAS_MVAPICH2_VERSION)
  set(flavour "MPICH")
endif()

set(loader ${PROJECT_SOURCE_DIR}/src/nnti/transport/module.cpp)
target_sources(nessie_nnti PRIVATE ${loader})
target_compile_definitions(nessie_nnti PRIVATE NNTI_LOADS_MPI)
set_source_files_properties(${loader} TARGET_DIRECTORY nessie_nnti PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_DEFINITIONS "NESSIE_VERSION=\"${PROJECT_VERSION}\";NESSIE_LIBDIR=\"${CMAKE_INSTALL_FULL_LIBDIR}\";NESSIE_MPI_FLAVOUR=\"${flavour}\"")

# It says which MPI its process runs, which that has to show for it.
nessie_test(nnti_transport_module_test SOURCES ${PROJECT_SOURCE_DIR}/src/nnti/transport/module_test.cpp LIBS nessie_nnti LABELS nnti)
target_link_options(nnti_transport_module_test PRIVATE -Wl,--export-dynamic-symbol=MPI_Get_library_version)
target_compile_definitions(nnti_transport_module_test PRIVATE
  NESSIE_MPI_FLAVOUR="${flavour}" NNTI_NO_MODULE="$<TARGET_FILE:nnti_test_module>")
