# Arrow and Parquet: an installed package when there is one, else the libraries of the pinned
# pyarrow wheel (tools/fetch_deps.py). Provides tarn::arrow = arrow, compute and parquet.
# Includes are SYSTEM, since every library below is an imported target.
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/TarnFetch.cmake")

option(TARN_SYSTEM_ARROW "Use an installed Arrow (26 or newer) when CMake finds one" ON)

if(TARN_SYSTEM_ARROW)
  find_package(Arrow CONFIG QUIET)
  if(Arrow_FOUND AND Arrow_VERSION VERSION_GREATER_EQUAL 26)
    find_package(ArrowCompute CONFIG REQUIRED)
    find_package(Parquet CONFIG REQUIRED)
    message(STATUS "Arrow: ${Arrow_VERSION} of the system")
  endif()
endif()

if(NOT TARGET Arrow::arrow_shared)
  tarn_fetch(arrow _arrow_dir)

  # Declares `target` for lib<name>.so.<abi> of the wheel; further arguments are what it links.
  function(_tarn_wheel_library target name)
    file(GLOB _file "${_arrow_dir}/lib/lib${name}.so.*")
    list(LENGTH _file _count)
    if(NOT _count EQUAL 1)
      message(FATAL_ERROR "Arrow: expected one lib${name}.so.* in ${_arrow_dir}/lib")
    endif()
    get_filename_component(_soname "${_file}" NAME)
    add_library(${target} SHARED IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION "${_file}"
      IMPORTED_SONAME "${_soname}"
      INTERFACE_INCLUDE_DIRECTORIES "${_arrow_dir}/include"
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_arrow_dir}/include"
      INTERFACE_COMPILE_FEATURES cxx_std_20
      INTERFACE_LINK_LIBRARIES "${ARGN}")
  endfunction()

  _tarn_wheel_library(Arrow::arrow_shared arrow)
  _tarn_wheel_library(ArrowCompute::arrow_compute_shared arrow_compute Arrow::arrow_shared)
  _tarn_wheel_library(Parquet::parquet_shared parquet Arrow::arrow_shared)
  message(STATUS "Arrow: ${_arrow_dir}")
endif()

add_library(tarn_arrow INTERFACE)
add_library(tarn::arrow ALIAS tarn_arrow)
target_link_libraries(tarn_arrow INTERFACE
  Parquet::parquet_shared ArrowCompute::arrow_compute_shared Arrow::arrow_shared)
