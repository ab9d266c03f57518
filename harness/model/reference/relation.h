#ifndef HARNESS_MODEL_REFERENCE_RELATION_H_
#define HARNESS_MODEL_REFERENCE_RELATION_H_

// Relations between at most 64 events, with the operators of the papers' axioms.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace perfring::model::reference {

inline constexpr std::size_t kEventsMax = 64;

// A set of events.
using Events = std::uint64_t;

constexpr Events event(std::size_t i) {
  return Events{1} << i;
}

template <class F>
constexpr void for_each(Events events, F f) {
  for (; events != 0; events &= events - 1) f(static_cast<std::size_t>(std::countr_zero(events)));
}

class Relation {
 public:
  explicit Relation(std::size_t events) : size_{events} { std::fill_n(rows_.begin(), size_, 0); }
  Relation(const Relation& other) { *this = other; }
  Relation& operator=(const Relation& other) {
    size_ = other.size_;
    std::copy_n(other.rows_.begin(), size_, rows_.begin());
    return *this;
  }

  void add(std::size_t from, std::size_t to) { rows_[from] |= event(to); }
  void remove(std::size_t from, std::size_t to) { rows_[from] &= ~event(to); }
  void add_all(std::size_t from, Events to) { rows_[from] |= to; }
  bool has(std::size_t from, std::size_t to) const { return (rows_[from] & event(to)) != 0; }
  Events after(std::size_t from) const { return rows_[from]; }
  std::size_t size() const { return size_; }

  friend Relation operator|(Relation a, const Relation& b) {
    for (std::size_t i = 0; i < a.size_; ++i) a.rows_[i] |= b.rows_[i];
    return a;
  }
  friend Relation operator&(Relation a, const Relation& b) {
    for (std::size_t i = 0; i < a.size_; ++i) a.rows_[i] &= b.rows_[i];
    return a;
  }
  friend Relation operator-(Relation a, const Relation& b) {
    for (std::size_t i = 0; i < a.size_; ++i) a.rows_[i] &= ~b.rows_[i];
    return a;
  }
  // a ; b
  friend Relation operator*(const Relation& a, const Relation& b) {
    Relation both{a.size_};
    for (std::size_t i = 0; i < a.size_; ++i) {
      for_each(a.rows_[i], [&](std::size_t j) { both.rows_[i] |= b.rows_[j]; });
    }
    return both;
  }
  // a^-1
  Relation inverse() const {
    Relation inverse{size_};
    for (std::size_t i = 0; i < size_; ++i) {
      for_each(rows_[i], [&](std::size_t j) { inverse.add(j, i); });
    }
    return inverse;
  }
  // a?
  Relation or_same() const {
    Relation same = *this;
    for (std::size_t i = 0; i < size_; ++i) same.add(i, i);
    return same;
  }
  // a+
  Relation transitive() const {
    Relation all = *this;
    for (std::size_t k = 0; k < size_; ++k) {
      for (std::size_t i = 0; i < size_; ++i) {
        if (all.has(i, k)) all.rows_[i] |= all.rows_[k];
      }
    }
    return all;
  }
  // [from] ; a ; [to]
  Relation between(Events from, Events to) const {
    Relation part{size_};
    for_each(from, [&](std::size_t i) { part.rows_[i] = rows_[i] & to; });
    return part;
  }
  bool empty() const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (rows_[i] != 0) return false;
    }
    return true;
  }
  bool irreflexive() const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (has(i, i)) return false;
    }
    return true;
  }
  bool acyclic() const { return transitive().irreflexive(); }

 private:
  std::size_t size_ = 0;
  std::array<Events, kEventsMax> rows_;  // only the first size_ are set, and copied
};

}  // namespace perfring::model::reference

#endif  // HARNESS_MODEL_REFERENCE_RELATION_H_
