# spec/seccomp/*.json -> generated/launch/seccomp_{tables,names}.inc, at configure time: the rooms that include them
# are declared later, and a change of the data re-runs the configure step by itself.
find_package(Python3 COMPONENTS Interpreter REQUIRED)

file(GLOB OSB_SECCOMP_SPEC CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/seccomp/*.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${OSB_SECCOMP_SPEC} ${CMAKE_SOURCE_DIR}/tools/gen_seccomp.py)

execute_process(
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/gen_seccomp.py ${CMAKE_SOURCE_DIR}/spec/seccomp
          ${CMAKE_BINARY_DIR}/generated/launch
  RESULT_VARIABLE seccomp_failed
  ERROR_VARIABLE seccomp_error)
if(seccomp_failed)
  message(FATAL_ERROR "The seccomp profiles do not hold together.\n${seccomp_error}")
endif()

add_test(NAME tools/gen_seccomp COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/gen_seccomp_test.py)
set_tests_properties(tools/gen_seccomp PROPERTIES LABELS unit TIMEOUT 60)
