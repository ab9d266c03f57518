#ifndef PERFRING_VERSION_H_
#define PERFRING_VERSION_H_

// The version, in the sense of semver.org. Everything else takes it from these three numbers.
#define PERFRING_VERSION_MAJOR 0
#define PERFRING_VERSION_MINOR 1
#define PERFRING_VERSION_PATCH 0

// As a string, "0.1.0".
#define PERFRING_VERSION                                                         \
  PERFRING_INTERNAL_TEXT(PERFRING_VERSION_MAJOR)                                 \
  "." PERFRING_INTERNAL_TEXT(PERFRING_VERSION_MINOR) "." PERFRING_INTERNAL_TEXT( \
      PERFRING_VERSION_PATCH)

// As a number that increases with the version, for #if: 100 is 0.1.0, 10203 is 1.2.3.
#define PERFRING_VERSION_NUMBER \
  (PERFRING_VERSION_MAJOR * 10000 + PERFRING_VERSION_MINOR * 100 + PERFRING_VERSION_PATCH)

#define PERFRING_INTERNAL_TEXT(number) PERFRING_INTERNAL_TEXT_OF(number)
#define PERFRING_INTERNAL_TEXT_OF(expanded) #expanded

#endif  // PERFRING_VERSION_H_
