# Headers, library, CMake package and pkg-config file. The prefix can be moved afterwards.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/perfring")
install(TARGETS ${targets} EXPORT perfring-targets FILE_SET HEADERS)
install(EXPORT perfring-targets NAMESPACE perfring:: DESTINATION "${package_dir}")

# As ABI.md has it: before 1.0, another minor version is another API.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/perfring-config-version.cmake"
  COMPATIBILITY ${compatibility})
install(FILES cmake/perfring-config.cmake "${CMAKE_CURRENT_BINARY_DIR}/perfring-config-version.cmake"
  DESTINATION "${package_dir}")

if(NOT PERFRING_RING_ONLY)
  # Folders relative to the file itself, unless they were given as absolute ones.
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
    OUTPUT_VARIABLE libdir)
  foreach(dir LIBDIR INCLUDEDIR)
    cmake_path(SET pc_dir NORMALIZE "${CMAKE_INSTALL_${dir}}")
    if(NOT IS_ABSOLUTE "${pc_dir}")
      cmake_path(SET pc_dir NORMALIZE "${CMAKE_INSTALL_PREFIX}/${pc_dir}")
      cmake_path(RELATIVE_PATH pc_dir BASE_DIRECTORY "${libdir}/pkgconfig")
      set(pc_dir "\${pcfiledir}/${pc_dir}")
    endif()
    set(pc_${dir} "${pc_dir}")
  endforeach()
  configure_file(cmake/perfring.pc.in perfring.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/perfring.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
