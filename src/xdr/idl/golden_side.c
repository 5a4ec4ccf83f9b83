/* SPDX-License-Identifier: BSD-3-Clause */
/* One side: GOLDEN_SIDE, made of GOLDEN_HEADER. */
#include GOLDEN_HEADER

#include "golden_side.h"

// clang-format off
#define GOLDEN_TYPES(IT) \
  IT(color) IT(title) IT(digest) IT(offsets) IT(quad) IT(point) IT(everything) IT(node) IT(chain) IT(tree) \
  IT(answer) IT(number) IT(choice) IT(sized) IT(holder) IT(step) IT(numbers) IT(key) IT(pair) IT(keys) \
  IT(names) IT(stop) IT(list) IT(item) IT(aliases) IT(left) IT(right) IT(arms) IT(bare) IT(rest)

#define GOLDEN_FIELDS(IT) \
  IT(point, x) IT(point, y) IT(point, z) \
  IT(offsets, offsets_len) IT(offsets, offsets_val) \
  IT(everything, i) IT(everything, u) IT(everything, h) IT(everything, uh) IT(everything, f) IT(everything, d) \
  IT(everything, b) IT(everything, c) IT(everything, titles) IT(everything, titles.titles_val) \
  IT(everything, key) IT(everything, blob) IT(everything, few) IT(everything, text) IT(everything, bounded) \
  IT(everything, corners) IT(everything, many) IT(everything, many.many_len) IT(everything, maybe) \
  IT(everything, places) IT(everything, numbers) IT(everything, flags) IT(everything, three) \
  IT(everything, colors) IT(everything, colors.colors_val) \
  IT(node, value) IT(node, text) IT(node, next) \
  IT(tree, value) IT(tree, children) IT(tree, children.children_val) \
  IT(answer, c) IT(answer, answer_u) IT(answer, answer_u.place) \
  IT(number, kind) IT(number, number_u) IT(number, number_u.small) IT(number, number_u.large) \
  IT(number, number_u.words) IT(number, number_u.raw) IT(number, number_u.raw.raw_val) \
  IT(choice, yes) IT(choice, choice_u.links) \
  IT(sized, n) IT(sized, sized_u.d) \
  IT(holder, a) IT(holder, n) IT(holder, c) IT(holder, s) IT(holder, t) \
  IT(numbers, l) IT(numbers, ul) IT(numbers, ul2) IT(numbers, u) IT(numbers, u2) IT(numbers, i32) \
  IT(numbers, u32) IT(numbers, u32b) IT(numbers, i64) IT(numbers, u64) IT(numbers, u64b) IT(numbers, three) \
  IT(numbers, more) IT(numbers, more.more_val) IT(numbers, flat) IT(numbers, floats) \
  IT(numbers, floats.floats_val) IT(numbers, doubles) IT(numbers, wide) IT(numbers, maybe) IT(numbers, large) \
  IT(numbers, flag) IT(numbers, where) \
  IT(keys, keys_len) IT(keys, keys_val) \
  IT(names, names_len) IT(names, names_val) \
  IT(item, at) IT(item, next) \
  IT(aliases, k) IT(aliases, p) IT(aliases, ks) IT(aliases, n) IT(aliases, s) IT(aliases, first) \
  IT(aliases, two) \
  IT(left, value) IT(left, other) \
  IT(right, own) IT(right, others) IT(right, others.others_val) \
  IT(arms, at) IT(arms, arms_u) IT(arms, arms_u.raw) IT(arms, arms_u.three) IT(arms, arms_u.k) \
  IT(bare, n) \
  IT(rest, a) IT(rest, b) IT(rest, r)
// clang-format on

#define FUNCTIONS(T)                                                              \
  static bool_t code_##T(XDR *xdrs, void *value) { return xdr_##T(xdrs, value); } \
  static void free_##T(void *value) { xdr_free((xdrproc_t)xdr_##T, value); }
GOLDEN_TYPES(FUNCTIONS)

#define TYPE(T) {#T, sizeof(T), code_##T, free_##T},
static const struct golden_type types[] = {GOLDEN_TYPES(TYPE){NULL, 0, NULL, NULL}};

#define FIELD(T, F) {#T "." #F, offsetof(T, F), sizeof(((T *)0)->F)},
static const struct golden_field fields[] = {GOLDEN_FIELDS(FIELD){NULL, 0, 0}};

const struct golden_side GOLDEN_SIDE = {types, fields};
