# SPDX-License-Identifier: BSD-3-Clause
# What we stand on, by its Debian name; `./dev deps` installs all of it.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
if(NOT DEFINED Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3)          # the one that Debian's packages are for, whatever else PATH has
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter) # python3: generates the interposer's entry points, runs tests
find_package(MPI REQUIRED COMPONENTS C)             # libopenmpi-dev
find_package(fmt REQUIRED)                          # libfmt-dev
find_package(nlohmann_json REQUIRED)                # nlohmann-json3-dev
find_package(Boost 1.74 REQUIRED COMPONENTS context) # libboost-context-dev
find_package(GTest REQUIRED)                        # libgtest-dev
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)      # nettle-dev: HMAC, from a library that loads quickly
pkg_check_modules(HOGWEED REQUIRED IMPORTED_TARGET hogweed)    # nettle-dev: X25519
pkg_check_modules(FABRIC REQUIRED libfabric)        # libfabric-dev: headers; loaded when a network is asked for
pkg_check_modules(PMIX REQUIRED pmix)               # libpmix-dev: headers; loaded when a launcher is asked for a name
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)       # liburing-dev
pkg_check_modules(TIRPC REQUIRED IMPORTED_TARGET libtirpc)     # libtirpc-dev

find_path(PNETCDF_INCLUDE_DIR pnetcdf.h REQUIRED)   # libpnetcdf-dev
find_library(PNETCDF_LIBRARY pnetcdf REQUIRED)
add_library(pnetcdf_native INTERFACE)
target_include_directories(pnetcdf_native SYSTEM INTERFACE ${PNETCDF_INCLUDE_DIR})
target_link_libraries(pnetcdf_native INTERFACE ${PNETCDF_LIBRARY} MPI::MPI_C)
