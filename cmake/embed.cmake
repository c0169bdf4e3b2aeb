# embed(TARGET FILES...): for each file a header FILE.inc that is one raw string literal with its text, for
#   constexpr std::string_view kText =
#   #include "FILE.inc"
# Run as a script it writes one of them.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FROM} text)
  # Compilers bound one literal; adjacent ones join.
  string(LENGTH "${text}" length)
  set(out "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND out "R\"tbl(${piece})tbl\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  file(WRITE ${TO} "${out}")
  return()
endif()

function(embed TARGET)
  set(dir ${CMAKE_BINARY_DIR}/embed)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    set(to ${dir}/${name}.inc)
    add_custom_command(OUTPUT ${to}
      COMMAND ${CMAKE_COMMAND} -DFROM=${CMAKE_SOURCE_DIR}/${file} -DTO=${to} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
    target_sources(${TARGET} PRIVATE ${to})
  endforeach()
  target_include_directories(${TARGET} PRIVATE ${dir})
endfunction()
