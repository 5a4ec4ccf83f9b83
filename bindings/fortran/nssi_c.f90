! SPDX-License-Identifier: BSD-3-Clause
! nssi/runtime.h as Fortran sees it; programs use module nssi.
module nssi_c
  use, intrinsic :: iso_c_binding
  use nessie, only: nessie_status, nessie_ok, nessie_error, nessie_text
  implicit none
  public

  type, bind(C) :: nssi_rt_options
    type(c_ptr) :: transports = c_null_ptr, settings = c_null_ptr
    integer(c_int64_t) :: fiber_stack_bytes = 0
    integer(c_int32_t) :: max_fibers = 0, connects_only = 0, bulk_quiet_us = 0, bulk_longest_hold_us = 0
  end type
  type, bind(C) :: nssi_rt_call_options
    type(c_ptr) :: buffer = c_null_ptr
    integer(c_int32_t) :: timeout_ms = 0, idempotent = 0, one_way = 0, when_busy = 0
    type(c_funptr) :: on_over = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
  end type
  type, bind(C) :: nssi_rt_operation
    integer(c_int32_t) :: program = 0, version = 0, provider = 0, op = 0
    type(c_ptr) :: name = c_null_ptr
    integer(c_int32_t) :: kind = 0, reads_args_once = 0
    type(c_funptr) :: handler = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
  end type

  ! Functions of the same shape. Those without a result of their own give a nessie_code.
  abstract interface
    function code_of_handle(handle) result(code) bind(C)
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: code
    end function
    function code_of_time(handle, time_ms) result(code) bind(C)
      import :: c_ptr, c_int, c_int32_t
      type(c_ptr), value :: handle
      integer(c_int32_t), value :: time_ms
      integer(c_int) :: code
    end function
    function code_and_peer(runtime, place, timeout_ms, peer) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in) :: place(*)
      integer(c_int32_t), value :: timeout_ms
      integer(c_int64_t), intent(inout) :: peer
      integer(c_int) :: code
    end function
    function code_and_bytes(handle, bytes, size_bytes) result(code) bind(C)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: handle
      type(c_ptr), intent(inout) :: bytes
      integer(c_int64_t), intent(inout) :: size_bytes
      integer(c_int) :: code
    end function
    function code_of_data(request, data, size_bytes, offset) result(code) bind(C)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: request, data
      integer(c_int64_t), value :: size_bytes, offset
      integer(c_int) :: code
    end function
    function pointer_of_handle(handle) result(it) bind(C)
      import :: c_ptr
      type(c_ptr), value :: handle
      type(c_ptr) :: it
    end function
    function word_of_handle(handle) result(it) bind(C)
      import :: c_ptr, c_int32_t
      type(c_ptr), value :: handle
      integer(c_int32_t) :: it
    end function
    function number_of_handle(handle) result(it) bind(C)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: handle
      integer(c_int64_t) :: it
    end function
    function word_of_thread() result(it) bind(C)
      import :: c_int32_t
      integer(c_int32_t) :: it
    end function
  end interface

  procedure(word_of_thread), bind(C) :: nssi_rt_last_scope, nssi_rt_last_cause
  procedure(code_of_handle), bind(C) :: nssi_rt_close, nssi_rt_run, nssi_rt_stop, nssi_rt_free_buffer, &
    nssi_rt_cancel, nssi_rt_free_call, nssi_rt_check
  procedure(code_of_time), bind(C) :: nssi_rt_sleep, nssi_rt_stop_when_done, nssi_rt_wait
  procedure(code_and_peer), bind(C) :: nssi_rt_connect, nssi_rt_connect_to
  procedure(code_and_bytes), bind(C) :: nssi_rt_result, nssi_rt_args, nssi_rt_view_data
  procedure(code_of_data), bind(C) :: nssi_rt_get_data, nssi_rt_put_data
  procedure(pointer_of_handle), bind(C) :: nssi_rt_url, nssi_rt_buffer_bytes
  procedure(word_of_handle), bind(C) :: nssi_rt_buffer_rights, nssi_rt_role, nssi_rt_op
  procedure(number_of_handle), bind(C) :: nssi_rt_buffer_size, nssi_rt_caller, nssi_rt_data_bytes, nssi_rt_time_left_ms

  interface
    ! The bytes of an array; -1: they do not lie one after the other.
    subroutine nessie_fortran_memory(array, begin, size_bytes) bind(C)
      import :: c_ptr, c_int64_t
      type(*), dimension(..), intent(in), target :: array
      type(c_ptr), intent(out) :: begin
      integer(c_int64_t), intent(out) :: size_bytes
    end subroutine
    function nssi_rt_last_error() result(text) bind(C)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function nssi_rt_last_retry_after_ms() result(time_ms) bind(C)
      import :: c_int64_t
      integer(c_int64_t) :: time_ms
    end function

    function nssi_rt_open(options, runtime) result(code) bind(C)
      import :: nssi_rt_options, c_ptr, c_int
      type(nssi_rt_options), intent(in) :: options
      type(c_ptr), intent(inout) :: runtime
      integer(c_int) :: code
    end function
    function nssi_rt_announce(runtime, where, kind, timeout_ms) result(code) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t
      type(c_ptr), value :: runtime
      character(kind=c_char), intent(in) :: where(*), kind(*)
      integer(c_int32_t), value :: timeout_ms
      integer(c_int) :: code
    end function
    function nssi_rt_disconnect(runtime, peer) result(code) bind(C)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: runtime
      integer(c_int64_t), value :: peer
      integer(c_int) :: code
    end function

    function nssi_rt_register(runtime, memory, size_bytes, rights, buffer) result(code) bind(C)
      import :: c_ptr, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: runtime, memory
      integer(c_int64_t), value :: size_bytes
      integer(c_int32_t), value :: rights
      type(c_ptr), intent(inout) :: buffer
      integer(c_int) :: code
    end function
    function nssi_rt_allocate(runtime, size_bytes, rights, buffer) result(code) bind(C)
      import :: c_ptr, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: runtime
      integer(c_int64_t), value :: size_bytes
      integer(c_int32_t), value :: rights
      type(c_ptr), intent(inout) :: buffer
      integer(c_int) :: code
    end function

    ! `service`: nssi_service of module nssi.
    function nssi_rt_start(runtime, service, op, args, size_bytes, options, call) result(code) bind(C)
      import :: nssi_rt_call_options, c_ptr, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: runtime, service, args
      integer(c_int32_t), value :: op
      integer(c_int64_t), value :: size_bytes
      type(nssi_rt_call_options), intent(in) :: options
      type(c_ptr), intent(inout) :: call
      integer(c_int) :: code
    end function
    function nssi_rt_multicast(runtime, services, count, op, args, size_bytes, options, calls) result(code) bind(C)
      import :: nssi_rt_call_options, c_ptr, c_int, c_int32_t, c_int64_t
      type(c_ptr), value :: runtime, services, args
      integer(c_int64_t), value :: count, size_bytes
      integer(c_int32_t), value :: op
      type(nssi_rt_call_options), intent(in) :: options
      type(c_ptr), intent(inout) :: calls(*)
      integer(c_int) :: code
    end function
    function nssi_rt_when_over(call, callback, context) result(code) bind(C)
      import :: c_ptr, c_funptr, c_int
      type(c_ptr), value :: call, context
      type(c_funptr), value :: callback
      integer(c_int) :: code
    end function
    function nssi_rt_test(call, is_over) result(code) bind(C)
      import :: c_ptr, c_int, c_int32_t
      type(c_ptr), value :: call
      integer(c_int32_t), intent(inout) :: is_over
      integer(c_int) :: code
    end function
    function nssi_rt_wait_any(calls, count, timeout_ms, which) result(code) bind(C)
      import :: c_ptr, c_int, c_int32_t, c_int64_t
      type(c_ptr), intent(in) :: calls(*)
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: timeout_ms
      integer(c_int64_t), intent(inout) :: which
      integer(c_int) :: code
    end function
    function nssi_rt_wait_all(calls, count, timeout_ms) result(code) bind(C)
      import :: c_ptr, c_int, c_int32_t, c_int64_t
      type(c_ptr), intent(in) :: calls(*)
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: timeout_ms
      integer(c_int) :: code
    end function

    function nssi_rt_add_operation(runtime, operation) result(code) bind(C)
      import :: nssi_rt_operation, c_ptr, c_int
      type(c_ptr), value :: runtime
      type(nssi_rt_operation), intent(in) :: operation
      integer(c_int) :: code
    end function

    function nssi_rt_caller_identity(request, identity) result(code) bind(C)
      import :: c_ptr, c_int, c_int8_t
      type(c_ptr), value :: request
      integer(c_int8_t), intent(inout) :: identity(16)
      integer(c_int) :: code
    end function
    function nssi_rt_reply(request, bytes, size_bytes) result(code) bind(C)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: request, bytes
      integer(c_int64_t), value :: size_bytes
      integer(c_int) :: code
    end function
    function nssi_rt_reply_error(request, code, scope, cause, message) result(failed) bind(C)
      import :: c_ptr, c_char, c_int, c_int32_t
      type(c_ptr), value :: request
      integer(c_int32_t), value :: code, scope, cause
      character(kind=c_char), intent(in) :: message(*)
      integer(c_int) :: failed
    end function
  end interface

contains

  ! Of what C has just returned in this thread.
  recursive function status_of(code) result(status)
    integer(c_int), intent(in) :: code
    type(nessie_status) :: status
    if (code == nessie_ok) return
    status = nessie_error(code, nessie_text(nssi_rt_last_error()), nssi_rt_last_scope(), nssi_rt_last_cause())
    status%retry_after_ms = nssi_rt_last_retry_after_ms()
  end function
end module
