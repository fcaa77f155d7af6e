# One room of the house = one folder of tarn/ = one namespace = one static library.
#
# tarn_rooms() reads tools/layers.txt, so the link graph and the include rules that the tidy test
# enforces are one list. Every *.cc of a room goes into tarn_<room>; every *_test.cc into
# <room>_test, which is one ctest entry. Sub-folders of a room belong to the same targets.
include_guard(GLOBAL)

set(TARN_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  -Wno-missing-field-initializers -Werror)

# GCC 12 at -O2 sees reads and copies in inlined std::optional and std::string that do not happen.
set(TARN_FALSE_WARNINGS -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread
  -Wno-restrict -Wno-array-bounds)
set(TARN_FALSELY_WARNED
  tarn/format/declared_reader.cc
  tarn/iceberg/codec/avro.cc
  tarn/iceberg/codec/literal_json.cc
  tarn/iceberg/codec/manifest_decode.cc
  tarn/iceberg/codec/view_metadata_json.cc
  tarn/iceberg/codec/table_metadata_json.cc
  tarn/iceberg/table_metadata_json.cc
  tarn/catalog/pointer_store.cc
  tarn/landing/debezium_envelope.cc
  tarn/landing/landing_state.cc
  tarn/storage/s3/s3_client.cc
  tarn/storage/s3/s3_reader.cc
  tarn/storage/s3/s3_writer.cc
  tarn/storage/s3/s3_store.cc)
set(TARN_FALSELY_WARNED_ROOMS task query server cli)

# A fifth of the time of a test's compilation is for line numbers, which the sanitizers keep.
set(TARN_TEST_DEBUG $<$<CONFIG:RelWithDebInfo>:-g0>)

# Third-party libraries a room compiles against, beyond what its arrows bring.
set(TARN_LINK_base fmt::fmt spdlog::spdlog OpenSSL::Crypto PkgConfig::xxhash Threads::Threads
  Arrow::arrow_shared)
set(TARN_LINK_storage CURL::libcurl nlohmann_json::nlohmann_json)
set(TARN_LINK_metastore SQLite::SQLite3 nlohmann_json::nlohmann_json)
# Those whose headers no other room may see.
set(TARN_OWN_LINK_metastore PkgConfig::libpq)
set(TARN_LINK_format tarn::arrow nlohmann_json::nlohmann_json ZLIB::ZLIB)
set(TARN_LINK_source PkgConfig::rdkafka)
set(TARN_LINK_engine tarn::arrow DuckDB::duckdb nlohmann_json::nlohmann_json)
set(TARN_LINK_access nlohmann_json::nlohmann_json)
set(TARN_LINK_tree nlohmann_json::nlohmann_json)
set(TARN_LINK_dataset nlohmann_json::nlohmann_json)
set(TARN_LINK_iceberg tarn::arrow nlohmann_json::nlohmann_json ZLIB::ZLIB PkgConfig::zstd
  Snappy::snappy)
set(TARN_LINK_catalog nlohmann_json::nlohmann_json)
set(TARN_LINK_landing tarn::arrow nlohmann_json::nlohmann_json)
set(TARN_LINK_transform tarn::arrow nlohmann_json::nlohmann_json)
set(TARN_LINK_lakehouse tarn::arrow nlohmann_json::nlohmann_json)
set(TARN_LINK_maintenance tarn::arrow nlohmann_json::nlohmann_json)
set(TARN_LINK_query tarn::arrow nlohmann_json::nlohmann_json)
set(TARN_LINK_pipeline yaml-cpp nlohmann_json::nlohmann_json)
set(TARN_LINK_task nlohmann_json::nlohmann_json)
set(TARN_LINK_server nlohmann_json::nlohmann_json Boost::headers tarn::arrow)
set(TARN_LINK_cli nlohmann_json::nlohmann_json CLI11::CLI11 CURL::libcurl tomlplusplus::tomlplusplus)

function(tarn_room room deps)
  set(dir "${CMAKE_SOURCE_DIR}/tarn/${room}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${dir}/*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_library(tarn_${room} STATIC ${sources})
  target_compile_options(tarn_${room} PRIVATE ${TARN_WARNINGS})
  if(room IN_LIST TARN_FALSELY_WARNED_ROOMS)
    target_compile_options(tarn_${room} PRIVATE ${TARN_FALSE_WARNINGS})
  endif()
  target_include_directories(tarn_${room} PUBLIC "${CMAKE_SOURCE_DIR}")
  foreach(dep IN LISTS deps)
    target_link_libraries(tarn_${room} PUBLIC tarn_${dep})
  endforeach()
  target_link_libraries(tarn_${room} PUBLIC ${TARN_LINK_${room}} PRIVATE ${TARN_OWN_LINK_${room}})
  tarn_precompile(tarn_${room} "${TARN_LINK_${room}}")
  set_property(GLOBAL APPEND PROPERTY TARN_ROOM_TARGETS tarn_${room})
  if(tests AND NOT TARN_FUZZ)
    add_executable(${room}_test ${tests})
    # Tests are compiled once and run once: optimising them costs more than it saves.
    target_compile_options(${room}_test PRIVATE ${TARN_WARNINGS} -O0 ${TARN_TEST_DEBUG})
    target_link_libraries(${room}_test PRIVATE tarn_${room} tarn_test_support GTest::gmock_main)
    tarn_precompile(${room}_test "gtest;${TARN_LINK_${room}}")
    add_test(NAME ${room} COMMAND ${room}_test)
    set_tests_properties(${room} PROPERTIES TIMEOUT 600)
  endif()
endfunction()

# Standard headers for all, Arrow's for rooms that link tarn::arrow, JSON's for the two rooms where
# most sources include it (each source pays a second for a header set's pending templates, used or
# not), gtest for tests. Each set is compiled once and reused; a set of flags that differs would
# break the reuse, so flags are global.
set(TARN_JSON_ROOMS server cli)
function(tarn_precompile target libraries)
  set(kind std)
  if("tarn::arrow" IN_LIST libraries)
    set(kind arrow)
  endif()
  string(REGEX REPLACE "^tarn_|_test$" "" room "${target}")
  if(room IN_LIST TARN_JSON_ROOMS)
    set(kind ${kind}_json)
  endif()
  if("gtest" IN_LIST libraries)
    set(kind ${kind}_gtest)
  endif()
  set(owner tarn_pch_${kind})
  if(NOT TARGET ${owner})
    file(WRITE "${CMAKE_BINARY_DIR}/pch/${kind}.cc.new" "// Owner of a precompiled header.\n")
    configure_file("${CMAKE_BINARY_DIR}/pch/${kind}.cc.new" "${CMAKE_BINARY_DIR}/pch/${kind}.cc" COPYONLY)
    add_library(${owner} OBJECT "${CMAKE_BINARY_DIR}/pch/${kind}.cc")
    target_compile_options(${owner} PRIVATE ${TARN_WARNINGS})
    if(kind MATCHES gtest)
      target_compile_options(${owner} PRIVATE -O0 ${TARN_TEST_DEBUG})
    endif()
    target_link_libraries(${owner} PRIVATE fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json)
    set(headers <algorithm> <chrono> <functional> <map> <memory> <mutex> <optional> <string>
      <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
    if(kind MATCHES json)
      list(APPEND headers <nlohmann/json.hpp>)
    endif()
    if(kind MATCHES arrow)
      list(APPEND headers <arrow/api.h>)
      target_link_libraries(${owner} PRIVATE tarn::arrow)
    endif()
    if(kind MATCHES gtest)
      list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
      target_link_libraries(${owner} PRIVATE GTest::gmock)
    endif()
    target_precompile_headers(${owner} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

function(tarn_rooms)
  foreach(source IN LISTS TARN_FALSELY_WARNED)
    set_property(SOURCE "${CMAKE_SOURCE_DIR}/${source}" APPEND PROPERTY COMPILE_OPTIONS
      ${TARN_FALSE_WARNINGS})
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tools/layers.txt")
  file(STRINGS "${CMAKE_SOURCE_DIR}/tools/layers.txt" lines REGEX "^[a-z]")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^([a-z_]+):.*$" "\\1" room "${line}")
    string(REGEX REPLACE "^[a-z_]+: *" "" deps "${line}")
    separate_arguments(deps)
    if(IS_DIRECTORY "${CMAKE_SOURCE_DIR}/tarn/${room}")
      set(present)
      foreach(dep IN LISTS deps)
        file(GLOB_RECURSE dep_sources "${CMAKE_SOURCE_DIR}/tarn/${dep}/*.cc")
        if(dep_sources)
          list(APPEND present ${dep})
        endif()
      endforeach()
      tarn_room(${room} "${present}")
    endif()
  endforeach()
endfunction()
