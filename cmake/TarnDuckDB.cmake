# DuckDB's C interface: an installed library and header when both are found, else the pinned
# binary (tools/fetch_deps.py). Provides DuckDB::duckdb, and TARN_DUCKDB_EXTENSION_DIR, where the
# signed extensions lie that the engine loads by path.
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/TarnFetch.cmake")

option(TARN_SYSTEM_DUCKDB "Use an installed libduckdb (1.5.5) when CMake finds one" ON)

if(TARN_SYSTEM_DUCKDB)
  find_library(TARN_DUCKDB_LIBRARY duckdb)
  find_path(TARN_DUCKDB_INCLUDE_DIR duckdb.h)
  mark_as_advanced(TARN_DUCKDB_LIBRARY TARN_DUCKDB_INCLUDE_DIR)
endif()

if(TARN_DUCKDB_LIBRARY AND TARN_DUCKDB_INCLUDE_DIR)
  set(_duckdb_library "${TARN_DUCKDB_LIBRARY}")
  set(_duckdb_include "${TARN_DUCKDB_INCLUDE_DIR}")
else()
  tarn_fetch(duckdb _duckdb_dir)
  set(_duckdb_library "${_duckdb_dir}/lib/libduckdb.so")
  set(_duckdb_include "${_duckdb_dir}/include")
endif()

add_library(DuckDB::duckdb SHARED IMPORTED GLOBAL)
set_target_properties(DuckDB::duckdb PROPERTIES
  IMPORTED_LOCATION "${_duckdb_library}"
  IMPORTED_SONAME libduckdb.so
  INTERFACE_INCLUDE_DIRECTORIES "${_duckdb_include}"
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_duckdb_include}")
message(STATUS "DuckDB: ${_duckdb_library}")

tarn_fetch(duckdb-extensions TARN_DUCKDB_EXTENSION_DIR)
