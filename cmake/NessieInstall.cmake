# SPDX-License-Identifier: BSD-3-Clause
# `cmake --install`: programs (nessied and those of bench install themselves), libraries, headers, the CMake package Nessie
# (Nessie::nnti, Nessie::nssi, Nessie::trios, …) and the pkg-config files nessie-nnti, nessie-nssi, nessie-nssi-stub,
# nessie-discovery, nessie-streams, nessie-fortran, nessie-trios, nessie-trios-nssi, nessie-xdr-c, nessie-pnetcdf and
# nessie-commsplitter.

include(CMakePackageConfigHelpers)

# Our warnings and sanitizers are our own affair, not that of those who build on Nessie.
get_target_property(nessie_own_options nessie_flags INTERFACE_COMPILE_OPTIONS)
set_target_properties(nessie_flags PROPERTIES INTERFACE_COMPILE_OPTIONS "$<BUILD_INTERFACE:${nessie_own_options}>")
target_compile_features(nessie_flags INTERFACE cxx_std_20)
# The public headers include some of base's, as <base/clock.hpp>.
target_include_directories(nessie_flags INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/nessie>)

# Where programs that are linked to the static libraries find what is loaded when it is needed: the transport mpi.
target_link_options(nessie_nnti INTERFACE
  "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}>")

set(nessie_exported nessie_flags)
set(nessie_floors base xdr xdr_c nnti nssi nssi_c nssi_file nssi_runtime nssi_stub contact service directory_protocol directory_client discovery streams_protocol streams streams_c fortran)
set(nessie_pkg_config nessie-nnti nessie-nssi nessie-nssi-stub nessie-discovery nessie-streams nessie-fortran nessie-xdr-c nessie-pnetcdf)
if(NESSIE_TRIOS)
  list(APPEND nessie_floors trios trios_nssi)
  list(APPEND nessie_pkg_config nessie-trios nessie-trios-nssi)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/compat/trios/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trios)
endif()
foreach(floor ${nessie_floors})
  set_target_properties(nessie_${floor} PROPERTIES EXPORT_NAME ${floor})
  list(APPEND nessie_exported nessie_${floor})
endforeach()
install(TARGETS ${nessie_exported} ${NESSIE_COMMSPLITTERS} EXPORT NessieTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(TARGETS nessie nessie_pnetcdf nessie_pnetcdf_engine nessie_embedded nessie_embedded_server   # nessied installs itself
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES
  ${PROJECT_SOURCE_DIR}/src/base/clock.hpp
  ${PROJECT_SOURCE_DIR}/src/base/config.hpp
  ${PROJECT_SOURCE_DIR}/src/base/credential.hpp
  ${PROJECT_SOURCE_DIR}/src/base/random.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nessie/base)

# Modules are of one compiler: their sources are for others.
install(DIRECTORY ${PROJECT_BINARY_DIR}/modules/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nessie/fortran/modules)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/fortran/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nessie/fortran
  FILES_MATCHING REGEX "(nessie|nessie_streams|nessie_streams_c|nessie_xdr|nssi|nssi_c)\\.[fF]90$|(numbers|streams)\\.inc$")

# --- CMake package ----------------------------------------------------------------------------------------------------

set(nessie_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Nessie)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/NessieConfig.cmake.in ${PROJECT_BINARY_DIR}/NessieConfig.cmake
  INSTALL_DESTINATION ${nessie_package_dir} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/NessieConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/NessieConfig.cmake ${PROJECT_BINARY_DIR}/NessieConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/NessieInterface.cmake
  DESTINATION ${nessie_package_dir})
install(EXPORT NessieTargets NAMESPACE Nessie:: DESTINATION ${nessie_package_dir})

# --- pkg-config -------------------------------------------------------------------------------------------------------

file(RELATIVE_PATH nessie_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)   # found from wherever it was moved to
foreach(package ${nessie_pkg_config})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
foreach(nessie_splitter ${NESSIE_COMMSPLITTERS})   # one for each MPI
  string(REPLACE _ - package nessie-${nessie_splitter})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/nessie-commsplitter.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
