# make install and make package: the program, its units and its documents; a .deb whose dependencies dpkg-shlibdeps finds.
include(GNUInstallDirs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the program is what is installed, not every test
install(TARGETS berth RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES deploy/systemd/berth.service deploy/systemd/berth-scheduler.service deploy/systemd/berth-controllers.service
  deploy/systemd/berth-agent.service deploy/systemd/berth-arbitrator.service
  DESTINATION lib/systemd/system)
install(FILES README.md LICENSE docs/glossary.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/concepts docs/operating docs/reference DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY deploy/base deploy/agent deploy/arbitrator deploy/examples deploy/webhook deploy/helm deploy/fleet proto DESTINATION ${CMAKE_INSTALL_DATADIR}/berth)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME berth)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "scheduler that holds a place for work that has not arrived yet")
set(CPACK_PACKAGE_CONTACT "Berth maintainers <berth@localhost>")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS tzdata)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "")
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/package)
include(CPack)
