#ifndef PERFRING_EXPORT_H_
#define PERFRING_EXPORT_H_

#include "perfring/version.h"  // so that no header of the library lacks it

// libperfring.so exports functions and classes, but for members that are marked as hidden.
// All else is hidden anyhow (lib/CMakeLists.txt, lib/README.md).
#define PERFRING_EXPORT [[gnu::visibility("default")]]
#define PERFRING_HIDDEN [[gnu::visibility("hidden")]]

#endif  // PERFRING_EXPORT_H_
