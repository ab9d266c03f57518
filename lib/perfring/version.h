#ifndef PERFRING_VERSION_H_
#define PERFRING_VERSION_H_

// The version, in the sense of semver.org: this is its only place.
#define PERFRING_VERSION_MAJOR 0
#define PERFRING_VERSION_MINOR 1
#define PERFRING_VERSION_PATCH 0
#define PERFRING_VERSION "0.1.0"

#endif  // PERFRING_VERSION_H_
