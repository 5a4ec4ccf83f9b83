# SPDX-License-Identifier: BSD-3-Clause
# Run at build time: writes the commit that is built to OUTPUT, if it has changed.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty OUTPUT_VARIABLE commit ERROR_QUIET
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once
namespace bench {
inline constexpr const char *kCommit = \"@commit@\";
}
" @ONLY)
