# kvstage's CUDA runtime without a GPU.
#
#   find_package(kvstage REQUIRED)                        with -Dkvstage_DIR=$(kvstage cpp --cmake-dir)
#   target_link_libraries(engine PRIVATE kvstage::cuda)   in the place of CUDA::cudart
#   kvstage_add_test(engine_test ARGS --rows 8)           a test for ctest: engine_test under schedules
cmake_minimum_required(VERSION 3.16)

get_filename_component(_kvstage_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
find_package(Threads REQUIRED)

if(NOT TARGET kvstage::cuda)
  add_library(kvstage_cuda STATIC "${_kvstage_root}/kvstage_cuda.cpp")
  add_library(kvstage::cuda ALIAS kvstage_cuda)
  target_include_directories(kvstage_cuda SYSTEM INTERFACE "${_kvstage_root}/include")
  target_compile_features(kvstage_cuda PUBLIC cxx_std_17)
  # The sanitizers of the project must not see the runtime: it tells them itself what happens. -g: reports leave out its own lines.
  target_compile_options(kvstage_cuda PRIVATE -fno-sanitize=all -O2 -g)
  # A few bytes that are copied in place would be copied where ThreadSanitizer doesn't see it.
  target_compile_options(kvstage_cuda INTERFACE -fno-builtin-memcpy -fno-builtin-memset -fno-builtin-memmove)
  target_link_libraries(kvstage_cuda PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
endif()

# kvstage_add_test(TARGET [ARGS argument...] [OPTIONS option...]): runs a test program under schedules. OPTIONS are those of `kvstage cpp run`.
function(kvstage_add_test target)
  cmake_parse_arguments(PARSE_ARGV 1 KVSTAGE_TEST "" "" "ARGS;OPTIONS")
  find_program(KVSTAGE_COMMAND kvstage)
  if(NOT KVSTAGE_COMMAND)
    message(FATAL_ERROR "the command kvstage is not found: activate its environment, or give -DKVSTAGE_COMMAND=...")
  endif()
  add_test(NAME ${target}.schedules COMMAND ${KVSTAGE_COMMAND} cpp run ${KVSTAGE_TEST_OPTIONS} -- $<TARGET_FILE:${target}> ${KVSTAGE_TEST_ARGS})
endfunction()
