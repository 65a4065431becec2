# Installs a build into an empty folder, moves that folder, and uses it there as a person and as
# another project would: cmake -DBUILD=DIR -DCOMPILER=PATH -P run.cmake.
set(work ${BUILD}/install_test)
function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  set(output "${output}" PARENT_SCOPE)
endfunction()
function(expect text pattern)
  if(NOT "${text}" MATCHES "${pattern}")
    message(FATAL_ERROR "no \"${pattern}\" in:\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/prefix)
set(model ${work}/prefix/share/banyan/models/banyan-nano)

run(${work}/prefix/bin/banyan generate --model ${model} --prompt "Once upon a time" --temperature 0
    --max-new-tokens 16)
expect("${output}" "[a-z0-9]")

file(GLOB pages ${work}/prefix/share/man/man1/*.1)
list(LENGTH pages count)
if(count LESS 15)
  message(FATAL_ERROR "${count} manual pages")
endif()
file(READ ${work}/prefix/share/man/man1/banyan-serve.1 page)
expect("${page}" "served..model..name")

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/outside
    -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${work}/outside)
run(${work}/outside/outside ${model})
expect("${output}" "[a-z]")

file(GLOB_RECURSE pkgconfig ${work}/prefix/banyan.pc)
cmake_path(GET pkgconfig PARENT_PATH folder)
run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} pkg-config --cflags banyan)
expect("${output}" "include")
file(REMOVE_RECURSE ${work})
