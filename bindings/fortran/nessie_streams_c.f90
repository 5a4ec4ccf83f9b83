! SPDX-License-Identifier: BSD-3-Clause
! nessie/streams.h, and streams.cpp, as Fortran sees them; programs use module nessie_streams.
module nessie_streams_c
  use, intrinsic :: iso_c_binding
  use nssi_c, only: code_of_handle, code_of_time
  implicit none
  public

  type, bind(C) :: c_options
    type(c_ptr) :: at = c_null_ptr
    integer(c_int32_t) :: durability = 0, append = 0, await_readers = 0, reading = 0, from = 0
    integer(c_int64_t) :: first = 0
    type(c_ptr) :: subscription = c_null_ptr
    integer(c_int64_t) :: group = 0
  end type
  type, bind(C) :: c_variable
    type(c_ptr) :: name = c_null_ptr
    integer(c_int32_t) :: type = 0, ndims = 0
    type(c_ptr) :: shape = c_null_ptr, fill = c_null_ptr
    integer(c_int32_t) :: is_constant = 0
  end type
  type, bind(C) :: c_attribute
    type(c_ptr) :: variable = c_null_ptr, name = c_null_ptr
    integer(c_int32_t) :: type = 0
    integer(c_int64_t) :: count = 0
    type(c_ptr) :: value = c_null_ptr
  end type
  type, bind(C) :: c_reader_info
    type(c_ptr) :: subscription = c_null_ptr
    integer(c_int32_t) :: reading = 0, size = 0, connected = 0
    integer(c_int64_t) :: ended = 0, lag = 0, missed = 0
  end type
  type, bind(C) :: c_info
    type(c_ptr) :: name = c_null_ptr
    integer(c_int32_t) :: status = 0
    type(c_ptr) :: why = c_null_ptr
    integer(c_int32_t) :: is_file = 0, writers = 0, connected = 0, durability = 0
    integer(c_int64_t) :: steps = 0, oldest = 0, memory_bytes = 0, log_bytes = 0
    type(c_ptr) :: variables = c_null_ptr
    integer(c_int64_t) :: variable_count = 0
    type(c_ptr) :: attributes = c_null_ptr
    integer(c_int64_t) :: attribute_count = 0
    type(c_ptr) :: readers = c_null_ptr
    integer(c_int64_t) :: reader_count = 0
  end type

  ! Functions of the same shape; all of these give a nessie_code.
  abstract interface
    function number_of_stream(stream) result(number) bind(C)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: stream
      integer(c_int64_t) :: number
    end function
    function code_and_list(stream, list, count) result(code) bind(C)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: stream
      type(c_ptr), intent(inout) :: list
      integer(c_int64_t), intent(inout) :: count
      integer(c_int) :: code
    end function
  end interface

  procedure(code_of_handle), bind(C) :: nessie_stream_drop, nessie_space_close
  procedure(code_of_time), bind(C) :: nessie_stream_close, nessie_stream_unsubscribe, nessie_stream_end_step
  procedure(number_of_stream), bind(C) :: nessie_stream_step, nessie_stream_missed
  procedure(code_and_list), bind(C) :: nessie_stream_variables, nessie_stream_attributes

  ! Those with arrays have interfaces of their own: gfortran 12 describes no array to procedures of an abstract one.
  interface
    function nessie_stream_open(name, mode, rank, size, options, timeout_ms, stream) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t, c_options
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: mode, rank, size
      type(c_options), intent(in) :: options
      integer(c_int32_t), value :: timeout_ms
      type(c_ptr), intent(inout) :: stream
      integer(c_int) :: code
    end function
    function nessie_stream_begin_step(stream, timeout_ms, state) result(code) bind(C)
      import :: c_ptr, c_int, c_int32_t
      type(c_ptr), value :: stream
      integer(c_int32_t), value :: timeout_ms
      integer(c_int32_t), intent(inout) :: state
      integer(c_int) :: code
    end function
    function nessie_stream_find(stream, name, variable) result(code) bind(C)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(inout) :: variable
      integer(c_int) :: code
    end function
    function nessie_stream_find_attribute(stream, variable, name, attribute) result(code) bind(C)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: variable(*), name(*)
      type(c_ptr), intent(inout) :: attribute
      integer(c_int) :: code
    end function
    function nessie_stream_allocate(size_bytes, memory) result(code) bind(C)
      import :: c_ptr, c_int, c_int64_t
      integer(c_int64_t), value :: size_bytes
      type(c_ptr), intent(inout) :: memory
      integer(c_int) :: code
    end function
    function nessie_stream_free(memory) result(code) bind(C)
      import :: c_ptr, c_int
      type(c_ptr), value :: memory
      integer(c_int) :: code
    end function
    function nessie_stream_list(at, timeout_ms, use, context) result(code) bind(C)
      import :: c_ptr, c_funptr, c_char, c_int, c_int32_t
      character(kind=c_char), intent(in) :: at(*)
      integer(c_int32_t), value :: timeout_ms
      type(c_funptr), value :: use
      type(c_ptr), value :: context
      integer(c_int) :: code
    end function
    function nessie_space_open(at, timeout_ms, space) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t
      character(kind=c_char), intent(in) :: at(*)
      integer(c_int32_t), value :: timeout_ms
      type(c_ptr), intent(inout) :: space
      integer(c_int) :: code
    end function
    function nessie_space_newest(space, name, timeout_ms, version) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: space
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: timeout_ms
      integer(c_int64_t), intent(inout) :: version
      integer(c_int) :: code
    end function
    function nessie_fortran_stream_define(stream, name, type, shape, fill, is_constant) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: type
      type(*), dimension(:), intent(in) :: shape
      type(*), dimension(..), intent(in), optional :: fill
      integer(c_int32_t), value :: is_constant
      integer(c_int) :: code
    end function
    function nessie_fortran_stream_get(stream, variable, array, start, count, timeout_ms) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: variable(*)
      type(*), dimension(..), intent(in) :: array
      type(*), dimension(:), intent(in), optional :: start, count
      integer(c_int32_t), value :: timeout_ms
      integer(c_int) :: code
    end function
    function nessie_fortran_stream_figures(stream, variable, start, count, timeout_ms, figures) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: variable(*)
      type(*), dimension(:), intent(in), optional :: start, count
      integer(c_int32_t), value :: timeout_ms
      type(c_ptr), value :: figures
      integer(c_int) :: code
    end function
    function nessie_fortran_stream_put(stream, variable, array, start, count) result(code) bind(C)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: variable(*)
      type(*), dimension(..), intent(in) :: array
      type(*), dimension(:), intent(in), optional :: start, count
      integer(c_int) :: code
    end function
    function nessie_fortran_stream_put_lent(stream, variable, array, start, count) result(code) bind(C)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: variable(*)
      type(*), dimension(..), intent(in) :: array
      type(*), dimension(:), intent(in), optional :: start, count
      integer(c_int) :: code
    end function
    function nessie_fortran_space_put(space, name, version, array, start, count, timeout_ms) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: space
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: version
      type(*), dimension(..), intent(in) :: array
      type(*), dimension(:), intent(in), optional :: start, count
      integer(c_int32_t), value :: timeout_ms
      integer(c_int) :: code
    end function
    function nessie_fortran_space_get(space, name, version, array, start, count, timeout_ms) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: space
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: version
      type(*), dimension(..), intent(in) :: array
      type(*), dimension(:), intent(in), optional :: start, count
      integer(c_int32_t), value :: timeout_ms
      integer(c_int) :: code
    end function
    function nessie_fortran_stream_set_attribute(stream, variable, name, value) result(code) bind(C)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: variable(*), name(*)
      type(*), dimension(..), intent(in) :: value
      integer(c_int) :: code
    end function
    function nessie_fortran_stream_get_attribute(stream, variable, name, value) result(code) bind(C)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: variable(*), name(*)
      type(*), dimension(..), intent(in) :: value
      integer(c_int) :: code
    end function
  end interface
end module
