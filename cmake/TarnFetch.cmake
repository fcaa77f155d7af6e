# tarn_fetch(NAME VARIABLE): sets VARIABLE to the directory of the pinned dependency NAME, which is
# downloaded on first use. The cache is TARN_DEPS_CACHE, by default ~/.cache/tarn.
include_guard(GLOBAL)

set(TARN_DEPS_CACHE "" CACHE PATH "Where downloads are kept (empty: $XDG_CACHE_HOME/tarn)")
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(_TARN_FETCH_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/../tools/fetch_deps.py")

function(tarn_fetch name variable)
  if(TARN_DEPS_CACHE)
    set(ENV{TARN_DEPS_CACHE} "${TARN_DEPS_CACHE}")
  endif()
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" "${_TARN_FETCH_SCRIPT}" "${name}"
    OUTPUT_VARIABLE _directory
    OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE _result)
  if(NOT _result EQUAL 0)
    message(FATAL_ERROR "could not fetch ${name}; the reason is above")
  endif()
  set(${variable} "${_directory}" PARENT_SCOPE)
endfunction()
