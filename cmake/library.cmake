# SPDX-License-Identifier: Apache-2.0
# librlx.so, and how it is installed. It exports what src/capi/librlx.map names and nothing else, needs no symbol that it
# does not link, and binds its own symbols to itself, whatever else the process has loaded.
include(CMakePackageConfigHelpers)

set(RLX_MAP ${CMAKE_SOURCE_DIR}/src/capi/librlx.map)
add_library(rlx SHARED $<TARGET_OBJECTS:rlx_objects>)
target_link_libraries(rlx PRIVATE rlx_flags rlx_dependencies)
target_include_directories(rlx INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(rlx PRIVATE LINKER:--version-script=${RLX_MAP} LINKER:--exclude-libs,ALL
  LINKER:--no-undefined-version LINKER:-Bsymbolic LINKER:-z,relro,-z,now LINKER:--gc-sections)
if(NOT RLX_SANITIZE)  # a sanitizer's runtime is in the program, not here
  target_link_options(rlx PRIVATE LINKER:-z,defs)
endif()
set_target_properties(rlx PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${RLX_MAP})

# Every path in what is installed is relative to the file that holds it, so the prefix may move.
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)
file(RELATIVE_PATH PKGCONFIG_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(pkgconfig/rlx.pc.in rlx.pc @ONLY)
configure_package_config_file(cmake/rlxConfig.cmake.in rlxConfig.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(rlxConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS rlx EXPORT rlxTargets)
install(FILES include/rlx.h TYPE INCLUDE)
install(FILES ${CMAKE_BINARY_DIR}/rlx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_BINARY_DIR}/rlxConfig.cmake ${CMAKE_BINARY_DIR}/rlxConfigVersion.cmake DESTINATION ${PACKAGE_DIR})
# What is linked in asks for its notices beside ours; Debian keeps those of each package in one file.
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES docs/ops.md docs/onnx.md docs/semantics.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(PACKAGE libopenblas-serial-dev libxxhash-dev nlohmann-json3-dev)
  install(FILES /usr/share/doc/${PACKAGE}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}/notices RENAME ${PACKAGE} OPTIONAL)
endforeach()
install(EXPORT rlxTargets NAMESPACE rlx:: DESTINATION ${PACKAGE_DIR})
