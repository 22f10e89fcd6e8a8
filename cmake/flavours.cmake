# Two flavours of every shared room, because every file of a program must see the same Boost macros:
#   osb_<room>      threads, shared libraries, sanitizers when asked for: serve, CLI and tests
#   osb_<room>_min  BOOST_ASIO_DISABLE_THREADS, static, never sanitized: launch and execd

# Frames of coroutines come from operator new, whose alignment is enough: aligned_alloc goes past the allocator's caches.
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
                        BOOST_ASIO_DISABLE_STD_ALIGNED_ALLOC BOOST_ASIO_DISABLE_BOOST_ALIGN _GNU_SOURCE)
add_compile_options(-ffunction-sections -fdata-sections -fstack-protector-strong -fno-omit-frame-pointer)
add_link_options(-Wl,--gc-sections -Wl,-z,relro,-z,now,-z,noexecstack)

add_library(osb_warnings INTERFACE)
target_compile_options(osb_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wimplicit-fallthrough -Wswitch-enum $<$<BOOL:${OSB_WERROR}>:-Werror>)

add_library(osb_flavour INTERFACE)
if(OSB_SAN)
  # vptr checks open a pipe for every object they look at; a program that tests running out of descriptors cannot have them.
  target_compile_options(osb_flavour INTERFACE -fsanitize=${OSB_SAN} -fno-sanitize=vptr -fno-sanitize-recover=all)
  target_link_options(osb_flavour INTERFACE -fsanitize=${OSB_SAN})
else()
  target_compile_options(osb_flavour INTERFACE -U_FORTIFY_SOURCE $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3> -D_GLIBCXX_ASSERTIONS)
endif()
target_link_libraries(osb_flavour INTERFACE Threads::Threads Boost::headers)

add_library(osb_flavour_min INTERFACE)
target_compile_definitions(osb_flavour_min INTERFACE BOOST_ASIO_DISABLE_THREADS OSB_MIN)
target_compile_options(osb_flavour_min INTERFACE -Oz -D_GLIBCXX_ASSERTIONS)
target_link_libraries(osb_flavour_min INTERFACE Boost::headers)

# What every request and every command of execd passes through is small code that pays for being fast.
foreach(hot http/gate.cc http/headers.cc http/head_writer.cc base/text.cc execd/child.cc execd/environment.cc
        execd/program.cc execd/events.cc execd/lines.cc)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${hot} PROPERTIES COMPILE_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-O2>)
endforeach()

# Boost's header-only sources, compiled once a flavour.
foreach(suffix "" "_min")
  add_library(osb_boost${suffix} STATIC cmake/boost_asio.cc cmake/boost_beast.cc)
  target_link_libraries(osb_boost${suffix} PUBLIC osb_flavour${suffix})
endforeach()

function(osb_room_flavour name suffix deps libs sources)
  set(target osb_${name}${suffix})
  if(NOT sources)
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    foreach(dep IN LISTS deps)
      target_link_libraries(${target} INTERFACE osb_${dep}${suffix})
    endforeach()
    return()
  endif()
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(${target} PUBLIC osb_flavour${suffix} PRIVATE osb_warnings)
  foreach(dep IN LISTS deps)
    target_link_libraries(${target} PUBLIC osb_${dep}${suffix})
  endforeach()
  if(suffix STREQUAL "")
    target_link_libraries(${target} PUBLIC ${libs})
  endif()
  if(name STREQUAL "async" OR name STREQUAL "http")
    target_link_libraries(${target} PUBLIC osb_boost${suffix})
  endif()
  # The heavy headers (Asio, Boost.JSON) are parsed once for all rooms that see them.
  if(suffix STREQUAL "" AND NOT name MATCHES "^(base|sys|enter|launch|confine|store)$")
    if(NOT TARGET osb_pch)
      file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "")
      add_library(osb_pch OBJECT ${CMAKE_BINARY_DIR}/pch.cc)
      target_include_directories(osb_pch PRIVATE ${CMAKE_SOURCE_DIR}/src)
      target_link_libraries(osb_pch PRIVATE osb_flavour osb_warnings)
      target_precompile_headers(osb_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
    endif()
    target_precompile_headers(${target} REUSE_FROM osb_pch)
    # Asio in the precompiled header leaves references to its compiled part in every file that reuses it.
    target_link_libraries(${target} PUBLIC osb_boost)
  endif()
endfunction()

function(osb_room name)
  cmake_parse_arguments(ROOM "BOTH" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/main\\.cc$|execd/lean\\.cc$")
  osb_room_flavour(${name} "" "${ROOM_DEPS}" "${ROOM_LIBS}" "${sources}")
  if(ROOM_BOTH)
    osb_room_flavour(${name} "_min" "${ROOM_DEPS}" "" "${sources}")
  endif()
endfunction()

function(osb_program name room)
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${room}/main.cc)
    add_executable(${name} src/${room}/main.cc)
    target_link_libraries(${name} PRIVATE osb_${room} osb_warnings)
  endif()
endfunction()

# `opensandbox` starts and ends within a millisecond, so the daemon and the libraries it needs are a program of their own
# that `opensandbox serve` becomes. What the small one needs is linked in; --as-needed drops the rest.
function(osb_serve_program name source)
  if(NOT TARGET opensandbox OR NOT EXISTS ${CMAKE_SOURCE_DIR}/${source})
    return()
  endif()
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE osb_cli osb_warnings)
  add_dependencies(opensandbox ${name})
  target_link_options(opensandbox PRIVATE -Wl,--as-needed)
  if(NOT OSB_SAN)
    find_library(YAML_CPP_A libyaml-cpp.a REQUIRED)
    target_link_libraries(opensandbox PRIVATE ${BOOST_JSON_A} ${BOOST_CONTAINER_A} ${YAML_CPP_A})
    target_link_options(opensandbox PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# launch and execd carry no interpreter and no library of the host: what runs beside hostile code is one sealed file.
function(osb_static_program name room)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${room}/main.cc)
    return()
  endif()
  add_executable(${name} src/${room}/main.cc)
  target_link_libraries(${name} PRIVATE osb_${room}_min osb_warnings)
  if(room STREQUAL "execd")
    # Debian's library comes whole or not at all, and brings iostreams; compiled here, only what is used stays.
    add_library(osb_json_min STATIC cmake/boost_json.cc)
    target_link_libraries(osb_json_min PUBLIC osb_flavour_min)
    target_link_libraries(${name} PRIVATE osb_json_min)
    # Nothing of a library refers to these by name before it is too late to leave the others out.
    target_sources(${name} PRIVATE src/execd/lean.cc)
    # What is read, what is executed and what is written each begin on a large page of their own (sys/large_segments.h). .plt.got and
    # .tdata are the first sections of theirs.
    if(CMAKE_EXE_LINKER_FLAGS MATCHES "mold")
      target_link_options(${name} PRIVATE -Wl,--section-start=.plt.got=0x400000 -Wl,--section-start=.tdata=0x600000)
    endif()
  endif()
  # Templates leave many functions with the same bytes; one copy of each is enough.
  target_link_options(${name} PRIVATE -static -s -Wl,--icf=safe)
endfunction()

# One test program a room from the *_test.cc beside its code, one for tests/kernel (needs root and a real kernel).
function(osb_tests)
  foreach(room base sys model async http store audit image runtime lifecycle proxy session api grpc_door enter launch confine execd daemon cli)
    file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*_test.cc)
    if(tests)
      add_executable(test_${room} ${tests})
      target_link_libraries(test_${room} PRIVATE osb_${room} osb_warnings Boost::json GTest::gmock GTest::gtest_main)
      target_include_directories(test_${room} PRIVATE ${CMAKE_SOURCE_DIR})
      gtest_discover_tests(test_${room} TEST_PREFIX "${room}/" PROPERTIES TIMEOUT 60 LABELS unit DISCOVERY_TIMEOUT 60)
    endif()
  endforeach()
  # Counted by tools/instruction_guard.py; not a test by itself.
  add_executable(guard_serve_path tests/guard/serve_path.cc)
  target_link_libraries(guard_serve_path PRIVATE osb_api osb_warnings)
  # Debian's valgrind cannot read the compiler's debug information; names are all it needs.
  add_custom_command(TARGET guard_serve_path POST_BUILD COMMAND ${CMAKE_OBJCOPY} --strip-debug $<TARGET_FILE:guard_serve_path>)
  file(GLOB kernel CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/kernel/*.cc)
  if(kernel)
    add_executable(test_kernel ${kernel})
    target_link_libraries(test_kernel PRIVATE osb_runtime osb_launch osb_warnings Boost::json GTest::gmock GTest::gtest_main)
    target_include_directories(test_kernel PRIVATE ${CMAKE_SOURCE_DIR})
    target_compile_definitions(test_kernel PRIVATE OSB_BUILD_DIR="${CMAKE_BINARY_DIR}")
    gtest_discover_tests(test_kernel TEST_PREFIX "kernel/" PROPERTIES TIMEOUT 120 LABELS kernel RUN_SERIAL ON DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

function(osb_fuzzers)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
  foreach(source IN LISTS fuzzers)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE osb_api osb_grpc_door osb_launch osb_execd)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
endfunction()
