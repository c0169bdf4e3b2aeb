# proto(TARGET NAMES...): the library TARGET with what protoc makes of proto/NAME/v1alpha1/NAME.proto. Its code is not ours: it keeps
# to no warnings, and nobody but link/ includes it.
function(proto TARGET)
  set(out ${CMAKE_BINARY_DIR}/proto)
  file(MAKE_DIRECTORY ${out})
  set(sources "")
  foreach(name ${ARGN})
    set(stem ${name}/v1alpha1/${name})
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h
      COMMAND ${PROTOC} -I${CMAKE_SOURCE_DIR}/proto --cpp_out=${out} --grpc_out=${out}
        --plugin=protoc-gen-grpc=${PROTOC_GRPC} ${stem}.proto
      DEPENDS ${CMAKE_SOURCE_DIR}/proto/${stem}.proto VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc)
  endforeach()
  list(APPEND sources ${out}/machine/v1alpha1/machine.grpc.pb.cc)
  add_library(${TARGET} STATIC ${sources})
  target_compile_options(${TARGET} PRIVATE -w)
  target_include_directories(${TARGET} SYSTEM PUBLIC ${out})
  target_link_libraries(${TARGET} PUBLIC ${GRPC} ${GPR} ${PROTOBUF})
endfunction()
