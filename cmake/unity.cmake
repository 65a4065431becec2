# BANYAN_UNITY: compiles several files of a folder at once. Half of what one file costs goes into
# headers and templates, which a group reads once.
if(BANYAN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Types in unnamed namespaces of an included file.
  add_compile_options(-Wno-subobject-linkage)
endif()

# banyan_group_unity(TARGET): compiles BANYAN_UNITY_FILES files of each folder of TARGET at once. A
# new file changes no group of another folder, so a compiler cache still has those.
function(banyan_group_unity target)
  if(NOT BANYAN_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    file(RELATIVE_PATH path ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    string(REGEX MATCH "^(unit/)?[a-z0-9_]+" folder ${path})
    if(folder)  # else it was generated
      string(MAKE_C_IDENTIFIER ${folder} folder)
      list(APPEND in_${folder} ${source})
      list(LENGTH in_${folder} count)
      math(EXPR group "(${count} - 1) / ${BANYAN_UNITY_FILES}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
