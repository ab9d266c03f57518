#ifndef PERFRING_EXPORT_H_
#define PERFRING_EXPORT_H_

#include "perfring/version.h"  // so that every header of the library has it

// PERFRING_EXPORT marks the functions and classes that libperfring.so exports; PERFRING_HIDDEN
// excludes a member. Everything else is hidden anyway (lib/CMakeLists.txt, lib/README.md).
#define PERFRING_EXPORT [[gnu::visibility("default")]]
#define PERFRING_HIDDEN [[gnu::visibility("hidden")]]

#endif  // PERFRING_EXPORT_H_
