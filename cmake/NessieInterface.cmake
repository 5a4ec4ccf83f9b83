# SPDX-License-Identifier: BSD-3-Clause
# nessie_add_interface(TARGET FILE.x...): compiles interface files as `nessie idl` does, and gives the target what comes
# out: NAME.hpp for NAME.x, and NAME_rpc.hpp if it has programs, for whoever links Nessie::nssi. Links what the first needs.
function(nessie_add_interface target)
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target}_interfaces)
  foreach(file ${ARGN})
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WE)
    add_custom_command(
      OUTPUT ${directory}/${name}.hpp
      COMMAND ${CMAKE_COMMAND} -E make_directory ${directory}
      COMMAND ${NESSIE_IDL} ${path} --out ${directory}
      DEPENDS ${path} ${NESSIE_IDL_DEPENDS}
      COMMENT "Compiling interface ${name}.x"
      VERBATIM)
    target_sources(${target} PRIVATE ${directory}/${name}.hpp)
  endforeach()
  target_include_directories(${target} PRIVATE ${directory})
  target_link_libraries(${target} PRIVATE ${NESSIE_IDL_LIBRARY})
endfunction()
