# spec/opensandbox/session/v1/session.proto -> generated/api/rpc/session_messages.{h,inc}, at configure time like the seccomp tables.
set(OSB_SESSION_PROTO ${CMAKE_SOURCE_DIR}/spec/opensandbox/session/v1/session.proto)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${OSB_SESSION_PROTO} ${CMAKE_SOURCE_DIR}/tools/gen_messages.py)
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/gen_messages.py ${OSB_SESSION_PROTO} ${CMAKE_BINARY_DIR}/generated/api/rpc
  RESULT_VARIABLE messages_failed
  ERROR_VARIABLE messages_error)
if(messages_failed)
  message(FATAL_ERROR "session.proto cannot be turned into messages.\n${messages_error}")
endif()

add_test(NAME tools/gen_messages COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/gen_messages_test.py)
set_tests_properties(tools/gen_messages PROPERTIES LABELS unit TIMEOUT 60)
