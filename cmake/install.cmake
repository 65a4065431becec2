# `cmake --install`: the program with its manual pages, completions, systemd unit and default model
# (component runtime); headers, libraries and what finds them (component development). cpack makes a
# Debian package of each.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS banyan RUNTIME COMPONENT runtime)
install(DIRECTORY models/banyan-nano DESTINATION ${CMAKE_INSTALL_DATADIR}/banyan/models
        COMPONENT runtime)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY packaging/systemd/ DESTINATION lib/systemd/system COMPONENT runtime
        FILES_MATCHING PATTERN "*.service")
# Files to begin a cell with (docs/DEPLOY.md).
install(DIRECTORY packaging/haproxy packaging/kubernetes packaging/monitoring packaging/slurm
        packaging/systemd DESTINATION ${CMAKE_INSTALL_DOCDIR}/deploy COMPONENT runtime
        PATTERN "*.service" EXCLUDE)

# The program writes its own manual pages and completions.
set(generated ${CMAKE_CURRENT_BINARY_DIR}/share)
add_custom_command(
  OUTPUT ${generated}/stamp
  COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:banyan> -DFOLDER=${generated}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_manual.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${generated}/stamp
  DEPENDS banyan cmake/write_manual.cmake
  COMMENT "Writing manual pages and completions")
add_custom_target(banyan_manual ALL DEPENDS ${generated}/stamp)
install(DIRECTORY ${generated}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT runtime)
install(FILES ${generated}/completions/banyan
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${generated}/completions/_banyan
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT runtime)
install(FILES ${generated}/completions/banyan.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)

# find_package(banyan), banyan::banyan.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/banyan)
install(TARGETS banyan_core banyan_network banyan_options banyan_library EXPORT banyan
        ARCHIVE COMPONENT development)
if(BANYAN_CUDA)
  install(TARGETS banyan_cuda EXPORT banyan ARCHIVE COMPONENT development)
endif()
install(DIRECTORY include/banyan DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT banyan NAMESPACE banyan:: FILE banyanTargets.cmake DESTINATION ${package_folder}
        COMPONENT development)
configure_package_config_file(cmake/banyanConfig.cmake.in banyanConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(banyanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH BANYAN_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/banyan.pc.in banyan.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/banyanConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/banyanConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/banyan.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME banyan)
set(CPACK_PACKAGE_CONTACT "Banyan maintainers <maintainers@banyan.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Engine and server for language models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME banyan)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libbanyan-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, libspdlog-dev, nlohmann-json3-dev, \
libsimdjson-dev, libcli11-dev, libboost1.81-dev, prometheus-cpp-dev, libxxhash-dev, libssl-dev, \
libpcre2-dev, libutf8proc-dev, libhiredis-dev, libzmq3-dev, pkg-config")
include(CPack)
