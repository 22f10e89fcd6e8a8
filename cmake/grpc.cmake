# opensandbox-grpc, the one program that sees libgrpc++ and libprotobuf. The library without TLS: clients come over loopback or
# through a proxy, and the smaller one has less to attack.
find_library(GRPCPP_LIBRARY grpc++_unsecure REQUIRED)
find_library(GRPC_LIBRARY grpc_unsecure REQUIRED)
find_library(GPR_LIBRARY gpr REQUIRED)
find_library(PROTOBUF_LIBRARY protobuf REQUIRED)
find_library(ABSL_LIBRARY absl_synchronization REQUIRED)
find_program(PROTOC protoc REQUIRED)

set(OSB_PROTOS grpc/health/v1/health.proto grpc/reflection/v1alpha/reflection.proto grpc/reflection/v1/reflection.proto
    opensandbox/session/v1/session.proto)
set(OSB_DESCRIPTORS ${CMAKE_BINARY_DIR}/generated/descriptors.pb)
list(TRANSFORM OSB_PROTOS PREPEND ${CMAKE_SOURCE_DIR}/spec/ OUTPUT_VARIABLE OSB_PROTO_FILES)
add_custom_command(
  OUTPUT ${OSB_DESCRIPTORS}
  COMMAND ${PROTOC} -I${CMAKE_SOURCE_DIR}/spec --include_imports --descriptor_set_out=${OSB_DESCRIPTORS} ${OSB_PROTOS}
  DEPENDS ${OSB_PROTO_FILES}
  VERBATIM)

target_sources(osb_grpc_door PRIVATE src/grpc_door/descriptors.S)
set_source_files_properties(src/grpc_door/descriptors.S PROPERTIES OBJECT_DEPENDS ${OSB_DESCRIPTORS} SKIP_PRECOMPILE_HEADERS ON
  COMPILE_DEFINITIONS "OSB_DESCRIPTORS=\"${OSB_DESCRIPTORS}\"")
target_link_libraries(osb_grpc_door PUBLIC ${GRPCPP_LIBRARY} ${GRPC_LIBRARY} ${GPR_LIBRARY} ${PROTOBUF_LIBRARY} ${ABSL_LIBRARY})
osb_program(opensandbox-grpc grpc_door)
