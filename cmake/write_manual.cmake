# cmake -DPROGRAM=banyan -DFOLDER=DIR -P write_manual.cmake: manual pages into DIR/man1, completions
# into DIR/completions.
function(write_output file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${FOLDER}/man1)
file(MAKE_DIRECTORY ${FOLDER}/man1 ${FOLDER}/completions)
write_output(${FOLDER}/completions/banyan completion bash)
write_output(${FOLDER}/completions/_banyan completion zsh)
write_output(${FOLDER}/completions/banyan.fish completion fish)
write_output(${FOLDER}/man1/banyan.1 man)
file(STRINGS ${FOLDER}/man1/banyan.1 lines REGEX "\\(1\\)$")
foreach(line ${lines})
  string(REGEX REPLACE "^.*banyan\\\\-(.*)\\\\fR.*$" "\\1" verb "${line}")
  string(REPLACE "\\-" "-" verb "${verb}")
  write_output(${FOLDER}/man1/banyan-${verb}.1 man ${verb})
endforeach()
