# Included after perfring was found, by any of the ways.
if(TARGET perfring::perfring)
  add_executable(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer.cc)
  target_link_libraries(consumer PRIVATE perfring::perfring)
endif()
add_executable(ring_consumer ${CMAKE_CURRENT_LIST_DIR}/ring_consumer.cc)
target_link_libraries(ring_consumer PRIVATE perfring::ring)
