! SPDX-License-Identifier: BSD-3-Clause
! What was made of golden.x in Fortran, for golden_test.cpp: bytes to a value, and back.
module golden_convert
  use, intrinsic :: iso_c_binding
  use nessie
  use golden_xdr
  implicit none
  private

contains

  ! Decodes all of `in` by the type of that number, and encodes the value. Returns the bytes in `out`; -1: the bytes were
  ! refused; -2: the value was.
  function golden_fortran_convert(type, in, in_bytes, out, out_bytes) result(size_bytes) bind(C)
    integer(c_int32_t), value :: type
    integer(c_int64_t), value :: in_bytes, out_bytes
    integer(c_int8_t), intent(in), target :: in(in_bytes)
    integer(c_int8_t), intent(inout) :: out(out_bytes)
    integer(c_int64_t) :: size_bytes
    integer(c_int8_t), allocatable :: bytes(:)
    type(nessie_status) :: decoded, encoded
    call convert(type, in, bytes, decoded, encoded)
    size_bytes = -1
    if (.not. decoded%ok()) return
    size_bytes = -2
    if (.not. encoded%ok()) return
    size_bytes = size(bytes, kind=c_int64_t)
    out(:size_bytes) = bytes
  end function

  subroutine convert(type, in, bytes, decoded, encoded)
    integer(c_int32_t), intent(in) :: type
    integer(c_int8_t), intent(in), target, contiguous :: in(:)
    integer(c_int8_t), allocatable, intent(inout) :: bytes(:)
    type(nessie_status), intent(out) :: decoded, encoded
    type(everything) :: all_kinds
    type(node_list) :: nodes
    type(holder) :: unions
    type(numbers) :: words
    type(aliases) :: named
    type(rest) :: others
    type(tree) :: root
    type(item_list) :: items
    type(offsets) :: array
    type(choice) :: maybe
    type(title) :: text
    type(digest) :: opaque
    type(number) :: kinds
    select case (type)
    case (0)
      decoded = xdr_decode(in, all_kinds)
      if (decoded%ok()) encoded = xdr_encode(all_kinds, bytes)
    case (1)
      decoded = xdr_decode(in, nodes)
      if (decoded%ok()) encoded = xdr_encode(nodes, bytes)
    case (2)
      decoded = xdr_decode(in, unions)
      if (decoded%ok()) encoded = xdr_encode(unions, bytes)
      call xdr_free(unions)
    case (3)
      decoded = xdr_decode(in, words)
      if (decoded%ok()) encoded = xdr_encode(words, bytes)
    case (4)
      decoded = xdr_decode(in, named)
      if (decoded%ok()) encoded = xdr_encode(named, bytes)
    case (5)
      decoded = xdr_decode(in, others)
      if (decoded%ok()) encoded = xdr_encode(others, bytes)
      call xdr_free(others)
    case (6)
      decoded = xdr_decode(in, root)
      if (decoded%ok()) encoded = xdr_encode(root, bytes)
      call xdr_free(root)
    case (7)
      decoded = xdr_decode(in, items)
      if (decoded%ok()) encoded = xdr_encode(items, bytes)
    case (8)
      decoded = xdr_decode(in, array)
      if (decoded%ok()) encoded = xdr_encode(array, bytes)
    case (9)
      decoded = xdr_decode(in, maybe)
      if (decoded%ok()) encoded = xdr_encode(maybe, bytes)
    case (10)
      decoded = xdr_decode(in, text)
      if (decoded%ok()) encoded = xdr_encode(text, bytes)
    case (11)
      decoded = xdr_decode(in, opaque)
      if (decoded%ok()) encoded = xdr_encode(opaque, bytes)
    case default
      decoded = xdr_decode(in, kinds)
      if (decoded%ok()) encoded = xdr_encode(kinds, bytes)
    end select
  end subroutine
end module
