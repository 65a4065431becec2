# banyan_precompile(TARGET): compiles BANYAN_PRECOMPILED once for the files of TARGET.
#
# Clang's precompiled header names the folder that it was made in, so it differs between clones,
# and ccache would compile again all that includes it. A file of its name with .sum added counts
# instead (CCACHE_PCH_EXTSUM): the digest of the text that was precompiled. Options are hashed with
# what includes it.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # CMake includes the header itself, too, by a path that ccache does not make relative.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
endif()

function(banyan_precompile target)
  target_precompile_headers(${target} PRIVATE ${BANYAN_PRECOMPILED})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir)
  separate_arguments(options UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  if(BANYAN_SANITIZE)
    list(APPEND options -fsanitize=${BANYAN_SANITIZE})
  endif()
  add_custom_command(OUTPUT ${folder}/cmake_pch.hxx.pch.sum
    COMMAND ${CMAKE_CXX_COMPILER} ${options} -std=gnu++${CMAKE_CXX_STANDARD} -w -E -P
      -MD -MF text.d -MT ${folder}/cmake_pch.hxx.pch.sum -x c++ cmake_pch.hxx -o text.ii
    COMMAND ${CMAKE_COMMAND} -E sha256sum text.ii > cmake_pch.hxx.pch.sum
    COMMAND ${CMAKE_COMMAND} -E rm text.ii
    DEPFILE ${folder}/text.d
    WORKING_DIRECTORY ${folder}
    COMMENT "Summing up what is precompiled for ${target}"
    VERBATIM)
  add_custom_target(${target}_precompiled DEPENDS ${folder}/cmake_pch.hxx.pch.sum)
  add_dependencies(${target} ${target}_precompiled)
endfunction()
