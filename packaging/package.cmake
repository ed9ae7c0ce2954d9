# What `cmake --install` and the Debian package hold beside the program, its man pages and its completions.
include(GNUInstallDirs)
set(docs ${CMAKE_INSTALL_DATAROOTDIR}/doc/preheat)
install(FILES README.md packaging/copyright DESTINATION ${docs})
install(DIRECTORY docs examples DESTINATION ${docs})
install(DIRECTORY deploy/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/preheat/deploy PATTERN *.sh EXCLUDE)
# packaging/sbom.py writes it from what this build is linked to.
install(FILES ${CMAKE_BINARY_DIR}/preheat.spdx.json DESTINATION ${docs} OPTIONAL)

set(PREHEAT_MAINTAINER "The Preheat authors <maintainers@preheat.invalid>" CACHE STRING
    "Who answers for the Debian package: a name and an address")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME preheat)
set(CPACK_PACKAGE_CONTACT ${PREHEAT_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/deb)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS tzdata)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "cluster autoscaler and warm pools for GPU inference
Preheat decides how many GPU replicas of a model server to keep warm on
Kubernetes, from one objective (how long requests may wait, and how many of
them), and grows and shrinks node groups of EKS, AKS, Karpenter and
Cluster API. Every decision is recorded and can be explained, replayed and
simulated.")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/packaging/stage.cmake)
set(CPACK_PREHEAT_SOURCE ${CMAKE_SOURCE_DIR})
include(CPack)
