# SPDX-License-Identifier: BSD-3-Clause

# Adds the rule by which `nessie idl` makes `outputs` of an interface in `directory`. More arguments are options of it.
function(nessie_compile_interface file directory languages outputs)
  get_filename_component(path ${file} ABSOLUTE)
  get_filename_component(name ${file} NAME)
  list(TRANSFORM languages PREPEND "--language;" OUTPUT_VARIABLE options)
  list(TRANSFORM outputs PREPEND ${directory}/)
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${directory}
    COMMAND ${NESSIE_IDL} ${path} --out ${directory} ${options} ${ARGN}
    DEPENDS ${path} ${NESSIE_IDL_DEPENDS}
    COMMENT "Compiling interface ${name}"
    VERBATIM)
endfunction()

# Whether an interface file has programs. Comments do not count; that the file changed has CMake run again.
function(nessie_has_programs file result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" " " text "${text}")
  string(REGEX REPLACE "(//|%)[^\n]*" " " text "${text}")
  string(REGEX MATCH "(^|[^A-Za-z0-9_])program[ \t\r\n]+[A-Za-z][A-Za-z0-9_]*[ \t\r\n]*{" found "${text}")
  if(found)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# nessie_add_interface(TARGET [LANGUAGES C CXX FORTRAN PYTHON] [NAMESPACE NAME] [TYPES_ONLY] FILE.x...): compiles interface
# files as `nessie idl` does, and gives the target what comes out. CXX, which it is unless something is said: NAME.hpp for
# NAME.x, which the target includes as <NAME.hpp>, and NAME_rpc.hpp if it has programs, for targets that link Nessie::nssi;
# in the namespace NAMESPACE, or of the file's name. C: NAME.h, and NAME_xdr.c as one of its sources; if it has programs,
# NAME_rpc.h, and NAME_rpc.c as another, unless TYPES_ONLY. FORTRAN: NAME.f90, with the modules NAME_xdr and, if it has
# programs, NAME_rpc, as one of its sources; its modules lie where the target's Fortran_MODULE_DIRECTORY says. PYTHON, also
# of a custom target: NAME.py, with a _ for what no module's name may have in it, in a directory that is the target's
# property NESSIE_PYTHON_INTERFACES. Links what they need.
function(nessie_add_interface target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TYPES_ONLY" "NAMESPACE" "")
  set(ARGN ${ARG_UNPARSED_ARGUMENTS})
  list(FIND ARGN LANGUAGES keyword)
  set(languages)
  set(files)
  foreach(argument ${ARGN})
    if(NOT keyword EQUAL -1 AND argument MATCHES "^(C|CXX|FORTRAN|PYTHON)$")
      list(APPEND languages ${argument})
    elseif(NOT argument STREQUAL "LANGUAGES")
      list(APPEND files ${argument})
    endif()
  endforeach()
  if(NOT languages)
    set(languages CXX)
  endif()
  set(name_space)
  if(ARG_NAMESPACE)
    set(name_space --namespace ${ARG_NAMESPACE})
  endif()
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target}_interfaces)
  foreach(file ${files})
    get_filename_component(stem ${file} NAME_WLE)
    set(names)
    set(outputs)
    if(CXX IN_LIST languages)
      list(APPEND names cpp)
      list(APPEND outputs ${stem}.hpp)
    endif()
    if(C IN_LIST languages)
      list(APPEND names c)
      list(APPEND outputs ${stem}.h ${stem}_xdr.c)
      nessie_has_programs(${file} has_programs)
      if(has_programs AND NOT ARG_TYPES_ONLY)
        list(APPEND outputs ${stem}_rpc.h ${stem}_rpc.c)
        target_link_libraries(${target} PRIVATE ${NESSIE_IDL_C_RPC_LIBRARY})
      endif()
    endif()
    if(FORTRAN IN_LIST languages)
      list(APPEND names fortran)
      list(APPEND outputs ${stem}.f90)
    endif()
    if(PYTHON IN_LIST languages)
      list(APPEND names python)
      string(MAKE_C_IDENTIFIER "${stem}" module)
      list(APPEND outputs ${module}.py)
    endif()
    nessie_compile_interface(${file} ${directory} "${names}" "${outputs}" ${name_space})
    list(TRANSFORM outputs PREPEND ${directory}/)
    target_sources(${target} PRIVATE ${outputs})
  endforeach()
  if(FORTRAN IN_LIST languages)   # a folder of its own: others may compile the same interface
    get_target_property(modules ${target} Fortran_MODULE_DIRECTORY)
    if(NOT modules)
      set(modules ${directory}/modules)
      set_target_properties(${target} PROPERTIES Fortran_MODULE_DIRECTORY ${modules})
    endif()
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${modules}>)
  endif()
  if(PYTHON IN_LIST languages)
    set_target_properties(${target} PROPERTIES NESSIE_PYTHON_INTERFACES ${directory})
    list(REMOVE_ITEM languages PYTHON)
  endif()
  if(languages)
    target_include_directories(${target} PRIVATE ${directory})
  endif()
  foreach(language ${languages})
    target_link_libraries(${target} PRIVATE ${NESSIE_IDL_${language}_LIBRARY})
  endforeach()
endfunction()

# nessie_add_module(NAME SOURCES FILE... [INTERFACES FILE.x...]): libNAME.so, a module of nessied (nessie/module.h). It is
# compiled with Nessie's headers and with what comes out of the interfaces, in the language of its sources (C, C++ or both),
# and linked to nothing of Nessie: nessied brings that.
function(nessie_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;INTERFACES")
  add_library(${name} MODULE ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES PREFIX lib SUFFIX .so)
  target_link_libraries(${name} PRIVATE ${NESSIE_FLAGS})
  set(languages)
  foreach(source ${ARG_SOURCES})
    if(source MATCHES "\\.c$")
      list(APPEND languages C)
    else()
      list(APPEND languages CXX)
    endif()
  endforeach()
  foreach(library NESSIE_IDL_CXX_LIBRARY NESSIE_IDL_C_LIBRARY NESSIE_IDL_C_RPC_LIBRARY)
    target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:${${library}},INTERFACE_INCLUDE_DIRECTORIES>)
    set(${library})   # within this function: nothing is linked
  endforeach()
  nessie_add_interface(${name} LANGUAGES ${languages} ${ARG_INTERFACES})
endfunction()

# TriosProcessXDR(FILE.x), for projects that were written for Trios: makes NAME.h, NAME_xdr.c and NAME.c, which is the same
# as NAME_xdr.c, in the current binary directory. Targets of the current directory that are defined after it list one of
# the two among their sources, by its name alone, and include <NAME.h>.
function(TriosProcessXDR file)
  get_filename_component(stem ${file} NAME_WLE)
  set(directory ${CMAKE_CURRENT_BINARY_DIR})
  nessie_compile_interface(${file} ${directory} c "${stem}.h;${stem}_xdr.c")
  add_custom_command(
    OUTPUT ${directory}/${stem}.c
    COMMAND ${CMAKE_COMMAND} -E copy ${directory}/${stem}_xdr.c ${directory}/${stem}.c
    DEPENDS ${directory}/${stem}_xdr.c ${directory}/${stem}.h
    VERBATIM)
  include_directories(${directory})
  link_libraries(${NESSIE_IDL_C_LIBRARY})
endfunction()
