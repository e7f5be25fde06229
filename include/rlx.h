/* SPDX-License-Identifier: Apache-2.0
 * rlx.h - build, import, compile and run tensor graphs.
 *
 * Rules that hold for every function
 *  - A function that can fail returns rlx_status_t *: NULL is success, anything else is owned by the caller
 *    (rlx_status_take reads and releases it). Its out parameters come last and are always written: NULL, 0 or "" on
 *    failure.
 *  - Strings are UTF-8 and NUL-terminated. A pointer argument is used before the call returns and never kept, unless
 *    its comment says "retained" (a reference is taken) or "borrowed" (must outlive the handle).
 *  - A required pointer that is NULL is RLX_E_INVALID_ARGUMENT; where no status is returned the result is NULL, 0 or
 *    "". An array of length 0 may be NULL. A length whose bytes exceed PTRDIFF_MAX is RLX_E_INVALID_ARGUMENT, and
 *    nothing is touched.
 *  - Shared handles and graphs are reference counted: X_retain returns its argument. attrs and exec have one owner.
 *    X_release(NULL) does nothing, and any order of release is right: a child holds its parents.
 *  - A handle belongs to the environment that it was made in. Mixing two environments is RLX_E_INVALID_ARGUMENT.
 *  - Any function that allocates may return RLX_E_NO_MEMORY, and one whose handle was made before fork()
 *    RLX_E_FORKED; the comments below name the other errors. The message of a status says what was expected and what
 *    came.
 *  - Nothing prints, exits, aborts, throws, changes a floating-point mode, installs a signal handler, or starts a
 *    thread at load.
 *  - A new op, option, format, device or statistic is a new string, never a new function. Numbers are never reused.
 */
#ifndef RLX_H
#define RLX_H
#include <stddef.h>
#include <stdint.h>

/* RLX_API exports a function. RLX_MUST also makes the compiler warn about a result that nobody looks at. */
#if defined(_WIN32) && defined(RLX_BUILD)
#define RLX_API __declspec(dllexport)
#elif defined(_WIN32)
#define RLX_API __declspec(dllimport)
#elif defined(__GNUC__)
#define RLX_API __attribute__((visibility("default")))
#else
#define RLX_API
#endif
#if defined(__GNUC__)
#define RLX_MUST RLX_API __attribute__((warn_unused_result))
#else
#define RLX_MUST RLX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- handles: "shared" ones may be used from any thread at once, "single" ones by one thread at a time ---- */

typedef struct rlx_status rlx_status_t;     /* shared: an error: code, message, details                           */
typedef struct rlx_env rlx_env_t;           /* shared: devices, threads, memory and log of one user               */
typedef struct rlx_device rlx_device_t;     /* shared: borrowed from its env, never released                      */
typedef struct rlx_attrs rlx_attrs_t;       /* single: named values: attributes of an op, options of a call       */
typedef struct rlx_tensor rlx_tensor_t;     /* shared: dtype, shape and dense row-major bytes                     */
typedef struct rlx_graph rlx_graph_t;       /* single while it is built; shared once nobody changes it            */
typedef struct rlx_weights rlx_weights_t;   /* shared: name -> tensor, and what was prepared from them            */
typedef struct rlx_compiled rlx_compiled_t; /* shared: an immutable program for one device; params aside          */
typedef struct rlx_exec rlx_exec_t;         /* single: one execution context of a program: arena, bindings, sizes */
typedef struct rlx_fence rlx_fence_t;       /* shared: whether asynchronous work is done, and its status         */
typedef struct rlx_model rlx_model_t;       /* shared: graph + weights + policy; compiled on demand               */
typedef struct rlx_blob rlx_blob_t;         /* shared: bytes owned by the library, followed by a 0 byte           */

typedef uint64_t rlx_value_t; /* a value of a graph; 0 is "invalid" and poisons what is built on it */
typedef int32_t rlx_code_t;   /* RLX_OK or one of RLX_E_* */
typedef int32_t rlx_dtype_t;  /* RLX_F32 ... */

/* Gives memory back to its owner. Called once, from any thread, with no lock of the library held. */
typedef void (*rlx_free_fn)(void *user, void *data);

/* Stands for an optional input that is left out. Other values are 2 or more. */
#define RLX_ABSENT 1

/* ---- version and features ---- */

/* The version of this header: major * 1000000 + minor * 1000 + patch. It is 0.x until the ABI is frozen as 1.0. */
#define RLX_VERSION 1000

/* The version of the library that runs, coded as RLX_VERSION is. */
RLX_API uint32_t rlx_version(void);

/* The version as text, "0.1.0". Never NULL; static. */
RLX_API const char *rlx_version_string(void);

/* What this build of the library contains: "backend.NAME", "format.NAME" and "op.NAME", as "op.softmax". Returns 0 if
 * absent, else the level of support. */
RLX_API int32_t rlx_feature(const char *name);

/* ---- status ---- */

#define RLX_OK 0
#define RLX_E_CANCELLED 1        /* stopped on request                                              */
#define RLX_E_UNKNOWN 2          /* a driver or library failed without saying why                   */
#define RLX_E_INVALID_ARGUMENT 3 /* NULL, a bad length, a handle of another environment             */
#define RLX_E_TIMEOUT 4          /* the time that the caller allowed is over                        */
#define RLX_E_NOT_FOUND 5        /* no such name, file, symbol or device                            */
#define RLX_E_EXISTS 6           /* the name is taken                                               */
#define RLX_E_DENIED 7           /* by policy or by the system                                      */
#define RLX_E_NO_MEMORY 8        /* an allocation failed, or a plan is above its limit              */
#define RLX_E_STATE 9            /* not now: an unset param, a tensor that is frozen                */
#define RLX_E_ABORTED 10         /* work that depended on something that failed                     */
#define RLX_E_RANGE 11           /* an index, size or number outside its range                      */
#define RLX_E_UNSUPPORTED 12     /* known and refused; the message says by whom and why             */
#define RLX_E_INTERNAL 13        /* our bug                                                         */
#define RLX_E_UNAVAILABLE 14     /* a device that is absent, lost or denied                         */
#define RLX_E_DATA 15            /* a damaged file or message                                       */
#define RLX_E_VERSION 16         /* made by another version, or for one                             */
#define RLX_E_IO 17              /* the system could not read a file                                */
#define RLX_E_SHAPE 18           /* a rank or dim that does not fit                                 */
#define RLX_E_DTYPE 19           /* a dtype that does not fit                                       */
#define RLX_E_OPTION 20          /* an unknown, missing, repeated or illegal attribute or option    */
#define RLX_E_FORKED 21          /* a handle that was made before fork()                            */
#define RLX_E_CALLBACK 22        /* a callback of the host failed                                   */

/* Copies "RLX_E_SHAPE: ..." into text, cut to capacity bytes with its NUL, releases the status and returns its code.
 * For a NULL status the text is "" and the code RLX_OK. text may be NULL if capacity is 0. */
RLX_API rlx_code_t rlx_status_take(rlx_status_t *status, char *text, size_t capacity);

/* The code of a status; RLX_OK for NULL. */
RLX_API rlx_code_t rlx_status_code(const rlx_status_t *status);

/* What went wrong, in words that a person can act on. Lives as long as the status; never NULL, "" for a NULL status. */
RLX_API const char *rlx_status_message(const rlx_status_t *status);

/* One detail, for programs: "op" (the name of an op), "value" (the name of a value, param, size, option ...), "input",
 * "device", "expected", "got", "line", "column", "offset" (in a file). Names have no quotes. NULL if the status has no
 * such detail, else text that lives as long as the status. */
RLX_API const char *rlx_status_detail(const rlx_status_t *status, const char *key);

/* The name of a code, "RLX_E_SHAPE". Static, never NULL. A number that is not a code gives "RLX_E_UNKNOWN". */
RLX_API const char *rlx_code_name(rlx_code_t code);

/* A status of the caller's own, for rlx_fence_signal. NULL for RLX_OK; a code that is none becomes RLX_E_UNKNOWN. The
 * message is copied; NULL: "". */
RLX_API rlx_status_t *rlx_status_create(rlx_code_t code, const char *message);

/* Takes one more reference and returns its argument. */
RLX_API rlx_status_t *rlx_status_retain(rlx_status_t *status);

/* Gives one reference back; the last frees the status. NULL: nothing. */
RLX_API void rlx_status_release(rlx_status_t *status);

/* ---- named values: op attributes and options alike ----
 * Text, op strings and the textual IR share one syntax: `axis=-1 eps=1e-5 perm=[0,2,1] act=gelu
 * shape=[batch,past+seq,64]`. Strings with spaces or commas need double quotes. A bool is true, false, 0 or 1. Setting
 * a key again replaces its value. Setters return nothing: the attrs keep the first failure, and the call that takes
 * them returns it. */

/* New attrs from text. NULL or "" gives empty ones. The caller owns them. Errors: RLX_E_OPTION for a syntax error
 * (detail "column") or a repeated key. */
RLX_MUST rlx_status_t *rlx_attrs_create(const char *text, rlx_attrs_t **out);

/* Frees the attrs. NULL: nothing. */
RLX_API void rlx_attrs_release(rlx_attrs_t *attrs);

/* Sets an integer. A bool is 0 or 1. Where the attribute is a dim, the integer may be a token of rlx_graph_dim. */
RLX_API void rlx_attrs_set_i64(rlx_attrs_t *attrs, const char *key, int64_t value);

/* Sets a number. Where an f64 is expected an integer is taken too. */
RLX_API void rlx_attrs_set_f64(rlx_attrs_t *attrs, const char *key, double value);

/* Sets a string, an enum, a dtype by its name, or a dim as text. Copied. */
RLX_API void rlx_attrs_set_str(rlx_attrs_t *attrs, const char *key, const char *value);

/* Sets a list of n integers. Where the attribute is a list of dims, they may be tokens. Copied. */
RLX_API void rlx_attrs_set_i64s(rlx_attrs_t *attrs, const char *key, const int64_t *values, size_t n);

/* Sets a list of n numbers. Copied. */
RLX_API void rlx_attrs_set_f64s(rlx_attrs_t *attrs, const char *key, const double *values, size_t n);

/* Sets a list of n strings, none of them NULL. Copied. */
RLX_API void rlx_attrs_set_strs(rlx_attrs_t *attrs, const char *key, const char *const *values, size_t n);

/* Sets a sub-graph: a branch of if, the body of while or scan. Copied, with the failure that it may hold. */
RLX_API void rlx_attrs_set_graph(rlx_attrs_t *attrs, const char *key, const rlx_graph_t *graph);

/* Sets a tensor. Retained. It must not be written after a graph has it. */
RLX_API void rlx_attrs_set_tensor(rlx_attrs_t *attrs, const char *key, rlx_tensor_t *tensor);

/* Reads integers: n receives how many there are, values the first `capacity` of them. A single integer is a list of
 * one, and a bool is 0 or 1. Errors: RLX_E_NOT_FOUND, RLX_E_OPTION for a value of another kind. */
RLX_MUST rlx_status_t *rlx_attrs_get_i64s(const rlx_attrs_t *attrs, const char *key, int64_t *values, size_t capacity,
                                          size_t *n);

/* Reads numbers, as rlx_attrs_get_i64s does; integers are converted. */
RLX_MUST rlx_status_t *rlx_attrs_get_f64s(const rlx_attrs_t *attrs, const char *key, double *values, size_t capacity,
                                          size_t *n);

/* Reads a string; value lives until the key is set again or the attrs are released. Errors: RLX_E_NOT_FOUND,
 * RLX_E_OPTION for a value of another kind. */
RLX_MUST rlx_status_t *rlx_attrs_get_str(const rlx_attrs_t *attrs, const char *key, const char **value);

/* The strings that the library understands, as JSON: "op.softmax" (meaning, inputs and outputs with their dtypes,
 * attributes with kinds and defaults, the kernels of each device), "ops" (all of them), "options.env",
 * "options.compile", "options.import". Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_schema(const rlx_env_t *env, const char *what, rlx_blob_t **json);

/* ---- what the host may own ---- */

#define RLX_LOG_TRACE 0 /* severities, least first */
#define RLX_LOG_DEBUG 1
#define RLX_LOG_INFO 2
#define RLX_LOG_WARN 3
#define RLX_LOG_ERROR 4
#define RLX_LOG_OFF 5

#define RLX_MEM_TENSOR 1   /* what alloc is asked for: the bytes of a tensor   */
#define RLX_MEM_ARENA 2    /* intermediate values of an execution context      */
#define RLX_MEM_PREPARED 3 /* packed weights                                   */
#define RLX_MEM_SCRATCH 4  /* working memory of kernels                        */

#define RLX_CB_OK 0x524c5831   /* what a callback returns if all is well                              */
#define RLX_CB_STOP 0x524c5832 /* the host wants the call to stop: it returns RLX_E_CANCELLED         */

/* The only transparent struct. It grows at the end only. struct_size says which members it has: any size from that of
 * version 0.1 on is accepted. What this library does not know must be zero (else RLX_E_VERSION). A zero member means
 * the library's own. Callbacks may come from any thread, with no lock of the library held, until the last handle of the
 * environment is released.
 *   log_level     the least severe level that is passed to log: RLX_LOG_TRACE (passes, plans, what was reused),
 *                 RLX_LOG_DEBUG (kernels chosen and refused), RLX_LOG_INFO (devices), RLX_LOG_WARN (what is slower than
 *                 it need be: an op without a native kernel)
 *   log           category: "device" "compile" "kernel" "plan" "params"; message: one line
 *   alloc         size bytes, aligned to align (a power of two); NULL fails the call with RLX_E_NO_MEMORY. Set
 *                 together with dealloc. Small objects use operator new.
 *   dealloc       gives back what alloc gave, with the same size, align and kind
 *   thread_count  how many threads parallel_for may use. Set together with parallel_for; the library then makes no
 *                 threads.
 *   thread_index  which of them calls, from 0; UINT32_MAX on a thread that is none of them. May be zero. The library
 *                 asks before it calls parallel_for: work that one of these threads runs does not start more of it.
 *   parallel_for  calls fn(arg, i) once for each i below n, in any order, even one by one, and returns when all are
 *                 done
 *   progress      called now and then by long calls (import, compile, params that are set): what they do, and the
 *                 fraction that is done, 0 to 1. One call of the library never has two of these at once. RLX_CB_OK: go
 *                 on. RLX_CB_STOP: the call returns RLX_E_CANCELLED. Any other answer: RLX_E_CALLBACK. Nothing has
 *                 changed then. A struct of version 0.1 may end before this member. */
typedef struct rlx_host {
  uint32_t struct_size;
  int32_t log_level;
  void *user;
  void (*log)(void *user, int32_t level, const char *category, const char *message);
  void *(*alloc)(void *user, size_t size, size_t align, uint32_t kind);
  void (*dealloc)(void *user, void *data, size_t size, size_t align, uint32_t kind);
  uint32_t (*thread_count)(void *user);
  uint32_t (*thread_index)(void *user);
  void (*parallel_for)(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg);
  int32_t (*progress)(void *user, const char *what, double fraction);
} rlx_host_t;

/* Zeroes the first struct_size bytes of *host and sets the member struct_size: rlx_host_init(&host, sizeof host).
 * NULL, or a size that cannot be right (below 4 or above 4096): nothing. */
RLX_API void rlx_host_init(rlx_host_t *host, size_t struct_size);

/* ---- environment and devices; two environments in one process never see each other ---- */

/* A new environment. options: "threads" (the most threads of a run; 0 and 1: no thread is made, all is done by the
 * caller; default: one per physical core that the process may use, of the fast kind where there are two),
 * "threads.pin" (0), "threads.spin" (how many microseconds the library's threads, and a run that waits for them, stay
 * awake before they sleep; 0: never; default: 100, or 1 where there are more threads than processors), "env.prefix"
 * (the prefix of environment variables, "RLX"), "memory.cache" (the most bytes of freed buffers that are kept for later
 * tensors, 268435456; 0: none); NULL: all defaults. Runs of several callers share the threads, each
 * about as many. host: copied, its callbacks and user pointer borrowed; NULL: the library's own services. The
 * environment variables that rlx_env_report(env, "environment") lists are read here and nowhere else;
 * options win over them. Errors: RLX_E_OPTION (also for the value of a variable), RLX_E_VERSION (struct_size),
 * RLX_E_INVALID_ARGUMENT (half a pair of callbacks), RLX_E_UNAVAILABLE (RLX_DEVICE names no device). */
RLX_MUST rlx_status_t *rlx_env_create(const rlx_attrs_t *options, const rlx_host_t *host, rlx_env_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_env_t *rlx_env_retain(rlx_env_t *env);

/* Gives one reference back. The last one, and everything made in the environment being released, joins every thread
 * that the library made, when the runs in flight have ended. NULL: nothing. */
RLX_API void rlx_env_release(rlx_env_t *env);

/* The number of devices. It stays as it is while the environment lives. */
RLX_API size_t rlx_env_device_count(const rlx_env_t *env);

/* A device by its number; NULL past the end. The first one is the default, also where RLX_DEVICE says which that is.
 * Borrowed: lives as long as the environment. */
RLX_API const rlx_device_t *rlx_env_device(const rlx_env_t *env, size_t index);

/* A device by its name, "cpu". spec NULL: what the environment variable RLX_DEVICE says, else "cpu". Errors:
 * RLX_E_UNAVAILABLE for any other name, also "", with a list of the devices. */
RLX_MUST rlx_status_t *rlx_env_find_device(const rlx_env_t *env, const char *spec, const rlx_device_t **out);

/* A report as JSON: "devices" (each with its capabilities), "threads" (how many a run may use, and their owner),
 * "environment" (the variables that were read, with their values). Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_env_report(const rlx_env_t *env, const char *what, rlx_blob_t **json);

/* Gives back to the allocator what is kept for later: freed buffers (rlx_env_create, "memory.cache"), and the contexts
 * of rlx_compiled_run and rlx_model_run that no run uses, with their arenas. Any thread may call it at any time. NULL:
 * nothing. */
RLX_API void rlx_env_trim(rlx_env_t *env);

/* One counter: "threads" (those of a run), "memory.kept" (bytes, see rlx_env_trim), "memory.<kind>.now" and
 * "memory.<kind>.peak" (bytes), and "memory.<kind>.allocations" (ever), where kind is tensor, arena, prepared or
 * scratch. Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_env_stat(const rlx_env_t *env, const char *key, int64_t *out);

/* The name that rlx_env_find_device takes, "cpu". Lives as long as the environment. */
RLX_API const char *rlx_device_name(const rlx_device_t *device);

/* One capability of rlx_env_report(env, "devices") that is a number. Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_device_get_i64(const rlx_device_t *device, const char *key, int64_t *out);

/* One text: "name", "kind" ("cpu"), "description", or a capability of rlx_env_report(env, "devices") such as "isa".
 * Lives as long as the environment. Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_device_get_str(const rlx_device_t *device, const char *key, const char **out);

/* What rlx_compile would report as "dispatch": for each kind of op and each node its path on this device, and why
 * kernels refused it. A graph with unsupported nodes is not an error here. options: as in rlx_compile, may be NULL. */
RLX_MUST rlx_status_t *rlx_device_supports(const rlx_device_t *device, const rlx_graph_t *graph,
                                           const rlx_attrs_t *options, rlx_blob_t **json);

/* ---- tensors: dense, row-major, little-endian; at most 8 dims, each >= 0; rank 0 is a scalar ---- */

#define RLX_F32 1
#define RLX_F16 2
#define RLX_BF16 3
#define RLX_F64 4
#define RLX_I8 5
#define RLX_I16 6
#define RLX_I32 7
#define RLX_I64 8
#define RLX_U8 9
#define RLX_U16 10
#define RLX_U32 11
#define RLX_U64 12
#define RLX_BOOL 13 /* one byte, 0 or 1                       */
#define RLX_C64 14  /* two f32: real and imaginary part       */
#define RLX_C128 15 /* two f64                                */
#define RLX_F8E4M3 16
#define RLX_F8E5M2 17 /* block-quantised ones are 64 and above: rlx_dtype_find("q4_0") */

/* The name of a dtype, "bf16"; static. NULL: no such dtype. */
RLX_API const char *rlx_dtype_name(rlx_dtype_t dtype);

/* The dtype of a name; 0: no such dtype. */
RLX_API rlx_dtype_t rlx_dtype_find(const char *name);

/* The bytes of that many elements in a row. Returns 0 for an unknown dtype, for elements of a block-quantised dtype
 * that are not whole blocks, and for more bytes than a size_t holds. */
RLX_API size_t rlx_dtype_bytes(rlx_dtype_t dtype, size_t elements);

/* A new tensor of zeros, on a device, or on the host if device is NULL. Errors: RLX_E_DTYPE, RLX_E_SHAPE (rank, a
 * negative dim, too many bytes), RLX_E_UNAVAILABLE. */
RLX_MUST rlx_status_t *rlx_tensor_create(rlx_env_t *env, const rlx_device_t *device, rlx_dtype_t dtype,
                                         const int64_t *dims, size_t rank, rlx_tensor_t **out);

/* A new host tensor with a copy of the data; bytes must be exactly what dtype and dims need. Errors: as
 * rlx_tensor_create; RLX_E_INVALID_ARGUMENT for a wrong number of bytes. */
RLX_MUST rlx_status_t *rlx_tensor_copy_from(rlx_env_t *env, rlx_dtype_t dtype, const int64_t *dims, size_t rank,
                                            const void *data, size_t bytes, rlx_tensor_t **out);

/* A tensor over the caller's memory, any alignment, borrowed until done(user, data) is called, which may be later
 * than the last release. With done NULL the memory must outlive the tensor and all that retains it. On failure done
 * is not called. Errors: as rlx_tensor_copy_from. */
RLX_MUST rlx_status_t *rlx_tensor_wrap(rlx_env_t *env, rlx_dtype_t dtype, const int64_t *dims, size_t rank, void *data,
                                       size_t bytes, rlx_free_fn done, void *user, rlx_tensor_t **out);

/* A read-only tensor over a part of a file, from a byte offset on. It is mapped: pages are read when they are used,
 * and the file must not be changed while the tensor lives. Errors: RLX_E_NOT_FOUND, RLX_E_DENIED, RLX_E_IO,
 * RLX_E_RANGE (the file ends before the tensor does), RLX_E_DTYPE, RLX_E_SHAPE. */
RLX_MUST rlx_status_t *rlx_tensor_map_file(rlx_env_t *env, rlx_dtype_t dtype, const int64_t *dims, size_t rank,
                                           const char *path, uint64_t offset, rlx_tensor_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_tensor_t *rlx_tensor_retain(rlx_tensor_t *tensor);

/* Gives one reference back; the last frees the memory or calls done. NULL: nothing. */
RLX_API void rlx_tensor_release(rlx_tensor_t *tensor);

/* RLX_F32 ...; 0 for NULL. */
RLX_API rlx_dtype_t rlx_tensor_dtype(const rlx_tensor_t *tensor);

/* Returns the rank and writes the first `capacity` dims. dims may be NULL if capacity is 0. */
RLX_API size_t rlx_tensor_shape(const rlx_tensor_t *tensor, int64_t *dims, size_t capacity);

/* The bytes of the data. */
RLX_API size_t rlx_tensor_bytes(const rlx_tensor_t *tensor);

/* The device that holds the data; NULL: the host. */
RLX_API const rlx_device_t *rlx_tensor_device(const rlx_tensor_t *tensor);

/* The bytes themselves, NULL when the host cannot see them or there are none. Live as long as the tensor. Writing here
 * during a run is a data race. Writing to a frozen or mapped tensor is undefined. */
RLX_API void *rlx_tensor_data(const rlx_tensor_t *tensor);

/* Overwrites `bytes` bytes from a byte offset on. Errors: RLX_E_RANGE (nothing is written), RLX_E_STATE for a tensor
 * that is read-only, or frozen because it is a param, a constant or a weight. */
RLX_MUST rlx_status_t *rlx_tensor_write(rlx_tensor_t *tensor, uint64_t offset, const void *data, size_t bytes);

/* Copies `bytes` bytes from a byte offset on to data. Errors: RLX_E_RANGE; nothing is written then. */
RLX_MUST rlx_status_t *rlx_tensor_read(const rlx_tensor_t *tensor, uint64_t offset, void *data, size_t bytes);

/* Copies bytes between two tensors, on any two devices; the parts may overlap. Offsets and lengths in bytes. Errors:
 * RLX_E_RANGE, RLX_E_STATE as in rlx_tensor_write. */
RLX_MUST rlx_status_t *rlx_tensor_copy(rlx_tensor_t *to, uint64_t to_offset, const rlx_tensor_t *from,
                                       uint64_t from_offset, uint64_t bytes);

/* A new host tensor with the elements converted as the op `cast` does: to a narrower float by rounding to nearest
 * even, to an integer by truncation and saturation, NaN to 0. Errors: RLX_E_DTYPE (complex to real, to a
 * block-quantised dtype). */
RLX_MUST rlx_status_t *rlx_tensor_cast(const rlx_tensor_t *tensor, rlx_dtype_t dtype, rlx_tensor_t **out);

/* dtype, shape and at most max_elements elements as text for people; its form may change. */
RLX_MUST rlx_status_t *rlx_tensor_print(const rlx_tensor_t *tensor, size_t max_elements, rlx_blob_t **text);

/* ---- graphs ----
 * An op call returns 0 on error, 0 as an input gives 0, and the graph keeps the first cause: check once, at the end,
 * by rlx_graph_status; rlx_compile and rlx_model_create return it too. A value belongs to its graph: in another one, a
 * sub-graph too, it is RLX_E_INVALID_ARGUMENT. A dim is a number or a token of rlx_graph_dim. */

#define RLX_INPUT 1  /* given at every run                                        */
#define RLX_OUTPUT 2 /* what a run makes                                          */
#define RLX_PARAM 3  /* given once: by weights at compile, or by set_param        */
#define RLX_SYMBOL 4 /* a size that is open until a run                           */

/* A new, empty graph. name: for prints and messages, may be NULL. */
RLX_MUST rlx_status_t *rlx_graph_create(rlx_env_t *env, const char *name, rlx_graph_t **out);

/* Takes one more reference to the same graph (no copy) and returns its argument. */
RLX_API rlx_graph_t *rlx_graph_retain(rlx_graph_t *graph);

/* Gives one reference back. NULL: nothing. */
RLX_API void rlx_graph_release(rlx_graph_t *graph);

/* The first error that building met, as a new reference, or NULL. Its details name the op and the value. */
RLX_MUST rlx_status_t *rlx_graph_status(const rlx_graph_t *graph);

/* A token for an open size: a symbol "seq", whose range [min, max] is declared for this graph (max 0: no maximum),
 * or an expression "past + seq" with + - * / (rounding down), min, max and parentheses, for which min and max are 0.
 * The same text is the same token in every graph of an environment. A token is below -2^48; INT64_MIN on error,
 * which the graph keeps: RLX_E_INVALID_ARGUMENT for a syntax error, RLX_E_RANGE for a range that is empty. Declaring a
 * symbol again narrows its range. */
RLX_API int64_t rlx_graph_dim(rlx_graph_t *graph, const char *text, int64_t min, int64_t max);

/* Prints a dim, a number or a token, as text cut to capacity bytes with its NUL. Returns the length that the whole
 * text has; 0 (and "") if it is not a dim. */
RLX_API size_t rlx_graph_dim_text(const rlx_graph_t *graph, int64_t dim, char *text, size_t capacity);

/* Declares an input. Errors, kept: RLX_E_EXISTS for a name that an input or param has, RLX_E_INVALID_ARGUMENT for an
 * empty one, RLX_E_DTYPE, RLX_E_SHAPE, RLX_E_RANGE (a dim that is not a token of this environment). */
RLX_API rlx_value_t rlx_graph_input(rlx_graph_t *graph, const char *name, rlx_dtype_t dtype, const int64_t *dims,
                                    size_t rank);

/* Declares a param, whose tensor comes from weights or rlx_compiled_set_param. Its dims are numbers. Errors as for
 * an input. */
RLX_API rlx_value_t rlx_graph_param(rlx_graph_t *graph, const char *name, rlx_dtype_t dtype, const int64_t *dims,
                                    size_t rank);

/* A constant with a copy of the data; bytes must be exactly what dtype and dims need. Errors, kept: RLX_E_DTYPE,
 * RLX_E_SHAPE, RLX_E_INVALID_ARGUMENT (bytes). */
RLX_API rlx_value_t rlx_graph_constant(rlx_graph_t *graph, rlx_dtype_t dtype, const int64_t *dims, size_t rank,
                                       const void *data, size_t bytes);

/* A constant without a copy: the tensor is retained, and frozen while anything made from the graph lives: until then
 * rlx_tensor_write to it is RLX_E_STATE. Errors, kept: RLX_E_STATE (a context writes it: it is bound as an output). */
RLX_API rlx_value_t rlx_graph_tensor(rlx_graph_t *graph, rlx_tensor_t *tensor);

/* A constant of rank 0, converted from f64 as `cast` does. Errors, kept: RLX_E_DTYPE for a block-quantised dtype. */
RLX_API rlx_value_t rlx_graph_scalar(rlx_graph_t *graph, rlx_dtype_t dtype, double value);

/* Any op of rlx_schema(env, "ops"): its name, or name and attributes, "layer_norm eps=1e-5". attrs adds more
 * attributes and may be NULL; a key in both is an error. in: n_in values, RLX_ABSENT for an optional one that is
 * left out; trailing absent ones may be dropped. Returns the first output, whose shape and dtype follow from the
 * inputs. Errors, kept: RLX_E_NOT_FOUND (no such op), RLX_E_OPTION, RLX_E_DTYPE, RLX_E_SHAPE, RLX_E_RANGE (an axis),
 * RLX_E_INVALID_ARGUMENT (number of inputs). */
RLX_API rlx_value_t rlx_graph_op(rlx_graph_t *graph, const char *op, const rlx_value_t *in, size_t n_in,
                                 const rlx_attrs_t *attrs);

/* As rlx_graph_op, for several outputs: out receives the first n_out of them. Returns out[0]. More outputs than the
 * op has are RLX_E_INVALID_ARGUMENT, kept. */
RLX_API rlx_value_t rlx_graph_op_n(rlx_graph_t *graph, const char *op, const rlx_value_t *in, size_t n_in,
                                   const rlx_attrs_t *attrs, rlx_value_t *out, size_t n_out);

/* Makes a value an output. A value may be several outputs. Errors, kept: RLX_E_EXISTS for a name that an output has. */
RLX_API void rlx_graph_output(rlx_graph_t *graph, const char *name, rlx_value_t value);

/* Names a value for messages and prints. Names need not differ. Inside rlx_graph_push_name("layer.3"), "q" becomes
 * "layer.3/q". */
RLX_API void rlx_graph_set_name(rlx_graph_t *graph, rlx_value_t value, const char *name);

/* Names the ops that are added from now on, until rlx_graph_pop_name. After the name "layer.3" the first matmul is
 * "layer.3/matmul", the second "layer.3/matmul_2". Names nest: "layer.3" and then "attention" give
 * "layer.3/attention/matmul". Texts, reports, and errors of building, compiling and running show them. Inputs, params,
 * constants and outputs stay as they are. Errors, kept: RLX_E_INVALID_ARGUMENT for an empty name. */
RLX_API void rlx_graph_push_name(rlx_graph_t *graph, const char *name);

/* Takes the last name of rlx_graph_push_name away. Errors, kept: RLX_E_STATE if there is none. */
RLX_API void rlx_graph_pop_name(rlx_graph_t *graph);

/* An elementwise op of one input: "relu" "exp" "neg" ... */
RLX_API rlx_value_t rlx_graph_unary(rlx_graph_t *graph, const char *op, rlx_value_t x);

/* An elementwise op of two inputs of one dtype: "add" "mul" "lt" ...; literal dims of 1 stretch, shapes aligned at
 * the right. */
RLX_API rlx_value_t rlx_graph_binary(rlx_graph_t *graph, const char *op, rlx_value_t a, rlx_value_t b);

/* The matrix product over the last two dims; the leading ones broadcast. */
RLX_API rlx_value_t rlx_graph_matmul(rlx_graph_t *graph, rlx_value_t a, rlx_value_t b);

/* The elements converted to another dtype, as by rlx_tensor_cast. */
RLX_API rlx_value_t rlx_graph_cast(rlx_graph_t *graph, rlx_value_t x, rlx_dtype_t dtype);

/* The same elements in other dims; one of them may be -1, for what is left. */
RLX_API rlx_value_t rlx_graph_reshape(rlx_graph_t *graph, rlx_value_t x, const int64_t *dims, size_t rank);

/* Axes in another order: dim i of the result is dim perm[i] of x; perm has the rank of x. */
RLX_API rlx_value_t rlx_graph_transpose(rlx_graph_t *graph, rlx_value_t x, const int64_t *perm, size_t rank);

/* Reduces over n axes, negative ones counting from the end, NULL and 0 for all: "sum" "prod" "max" "min" "mean"
 * "any" "all". keep_dims (0 or 1): a reduced dim stays, as 1. Errors, kept: RLX_E_NOT_FOUND for another name. */
RLX_API rlx_value_t rlx_graph_reduce(rlx_graph_t *graph, const char *op, rlx_value_t x, const int64_t *axes, size_t n,
                                     int32_t keep_dims);

/* exp(x - max) / sum of these, along one axis. */
RLX_API rlx_value_t rlx_graph_softmax(rlx_graph_t *graph, rlx_value_t x, int64_t axis);

/* How many inputs, outputs, params or symbols (kind: RLX_INPUT ...) the graph has; 0 for another kind. */
RLX_API size_t rlx_graph_count(const rlx_graph_t *graph, int32_t kind);

/* The name of one of them, in the order of declaration; NULL past the end. Lives until the graph is released or
 * added to. */
RLX_API const char *rlx_graph_name(const rlx_graph_t *graph, int32_t kind, size_t index);

/* The value of an input, output or param by its name; 0: no such value, and for RLX_SYMBOL. */
RLX_API rlx_value_t rlx_graph_find(const rlx_graph_t *graph, int32_t kind, const char *name);

/* dtype, rank and the first `capacity` dims of a value; open dims are tokens, for rlx_graph_dim_text. dims may be
 * NULL if capacity is 0; dtype and rank may be NULL. Errors: RLX_E_INVALID_ARGUMENT for a value of another
 * graph. */
RLX_MUST rlx_status_t *rlx_graph_value_info(const rlx_graph_t *graph, rlx_value_t value, rlx_dtype_t *dtype,
                                            int64_t *dims, size_t capacity, size_t *rank);

/* The graph as text. format: "rlx", which rlx_import_memory reads back. Errors: RLX_E_NOT_FOUND for another format,
 * and the error that the graph holds. */
RLX_MUST rlx_status_t *rlx_graph_print(const rlx_graph_t *graph, const char *format, rlx_blob_t **out);

/* ---- files ----
 * format: "onnx", "safetensors", "gguf", "rlx" (the text of rlx_graph_print), or NULL to go by the first bytes. */

/* Reads a file. Initialisers with at least 65 float, 8-bit or block-quantised elements become params, with their
 * tensors in *weights. The option params.min sets another number than 65: with params.min=1 each of them is a param.
 * All others become constants, as do scales and zero points (unless params.min=1); with weights NULL everything does.
 * With graph NULL the weights alone are read. External data must lie in the folder of the file.
 * Sizes that the file leaves open become symbols; one without a name becomes "<input>.<axis>". The option dims.<symbol>
 * makes a size a number, value.<input> an input a constant (it stays an input, which nothing reads); rank.<input> says
 * the rank where the file does not. An input that is a sequence needs sequence.<input>, its number of elements; each of
 * them is an input of its own, "<input>.0", "<input>.1" and so on, as are the elements of an output. absent.<input>=1
 * leaves out an input that is optional. decode=1 makes f32 of what gguf stores as tq1_0 or tq2_0.
 * options: rlx_schema(env, "options.import"), may be NULL. Errors: RLX_E_NOT_FOUND, RLX_E_IO, RLX_E_DENIED (external
 * data elsewhere), RLX_E_DATA (damaged), RLX_E_UNSUPPORTED (an op or version that is not known, with its node; a file of
 * an unknown format; elements of a type that is no dtype; safetensors and gguf hold no graph), RLX_E_OPTION,
 * RLX_E_INVALID_ARGUMENT (neither graph nor weights), and what building a graph may give. */
RLX_MUST rlx_status_t *rlx_import_file(rlx_env_t *env, const char *format, const char *path, const rlx_attrs_t *options,
                                       rlx_graph_t **graph, rlx_weights_t **weights);

/* As rlx_import_file, from memory. It is borrowed until done(user, data) is called, once, at the latest with the
 * last release of what was made from it; with done NULL it must live until the graph and the weights, and all that
 * retains them, are released. On failure done is not called. External data is RLX_E_DENIED. */
RLX_MUST rlx_status_t *rlx_import_memory(rlx_env_t *env, const char *format, const void *data, size_t bytes,
                                         rlx_free_fn done, void *user, const rlx_attrs_t *options, rlx_graph_t **graph,
                                         rlx_weights_t **weights);

/* New, empty weights. */
RLX_MUST rlx_status_t *rlx_weights_create(rlx_env_t *env, rlx_weights_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_weights_t *rlx_weights_retain(rlx_weights_t *weights);

/* Gives one reference back. NULL: nothing. */
RLX_API void rlx_weights_release(rlx_weights_t *weights);

/* Adds a tensor or replaces the one of that name. Retained. A program that is already compiled sees it after
 * rlx_compiled_set_params. */
RLX_MUST rlx_status_t *rlx_weights_put(rlx_weights_t *weights, const char *name, rlx_tensor_t *tensor);

/* The tensor of a name, as a new reference. Errors: RLX_E_NOT_FOUND, RLX_E_STATE (its bytes were given up: the compile
 * option weights.drop). */
RLX_MUST rlx_status_t *rlx_weights_get(const rlx_weights_t *weights, const char *name, rlx_tensor_t **out);

/* The number of names. */
RLX_API size_t rlx_weights_count(const rlx_weights_t *weights);

/* A name, in the order of the first put; NULL past the end. Lives as long as the weights. */
RLX_API const char *rlx_weights_name(const rlx_weights_t *weights, size_t index);

/* A report as JSON: "metadata" (what the file says about itself), "memory" (bytes of originals and of prepared
 * forms). Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_weights_report(const rlx_weights_t *weights, const char *what, rlx_blob_t **json);

/* ---- compiled graphs: planned at upper sizes, run at any sizes up to them ----
 * Inputs, outputs and params are "slots", numbered from 0 in the order of declaration. */

/* Compiles a graph (copied) for a device, NULL: as rlx_env_find_device(NULL). The tensors that the weights
 * (retained, may be NULL) hold now become its params; names that the graph lacks are no error. options:
 * rlx_schema(env, "options.compile"), such as dims.<symbol> (the upper size, needed where the graph declares no
 * maximum), threads, math, io.convert; may be NULL. Errors: the one that the graph holds; RLX_E_INVALID_ARGUMENT for
 * a graph without outputs; RLX_E_SHAPE naming all sizes that are open; RLX_E_RANGE for an upper size outside its
 * declared range; RLX_E_UNSUPPORTED naming the nodes that have no kernel, and why; RLX_E_OPTION; RLX_E_DTYPE or
 * RLX_E_SHAPE for a param; RLX_E_NO_MEMORY with the largest buffers for a plan above memory.limit; RLX_E_NOT_FOUND (a
 * rule of passes.expect that did not fire, the folder of dump).
 * io.alias, strings "output=input", makes one memory of two slots: a run consumes the input and leaves the output in
 * its place, so rows that are appended to a cache, and state that a step changes, are all that is written. The report
 * "passes" says where a plan has to copy, as the old value is still read when the new one is made. What is bound to
 * either slot is bound to both, in the slot's own dtype; memory that may not be written is RLX_E_STATE. After a run
 * that has failed the contents are unspecified. rlx_compiled_run and rlx_model_run leave their arguments as they are,
 * and copy. Errors: RLX_E_NOT_FOUND (no such slot), RLX_E_DTYPE and RLX_E_SHAPE (the types differ, or nothing bounds
 * the size), RLX_E_OPTION (a slot named twice). */
RLX_MUST rlx_status_t *rlx_compile(const rlx_graph_t *graph, rlx_weights_t *weights, const rlx_device_t *device,
                                   const rlx_attrs_t *options, rlx_compiled_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_compiled_t *rlx_compiled_retain(rlx_compiled_t *compiled);

/* Gives one reference back. NULL: nothing. */
RLX_API void rlx_compiled_release(rlx_compiled_t *compiled);

/* The device that it runs on; lives as long as the environment. */
RLX_API const rlx_device_t *rlx_compiled_device(const rlx_compiled_t *compiled);

/* How many inputs, outputs, params or symbols (kind: RLX_INPUT ...) there are; 0 for another kind. */
RLX_API size_t rlx_compiled_count(const rlx_compiled_t *compiled, int32_t kind);

/* The name of a slot or symbol; NULL past the end. Lives as long as the program. */
RLX_API const char *rlx_compiled_name(const rlx_compiled_t *compiled, int32_t kind, size_t slot);

/* The slot of a name, or -1. */
RLX_API int64_t rlx_compiled_find(const rlx_compiled_t *compiled, int32_t kind, const char *name);

/* The dtype of a slot; 0 past the end and for RLX_SYMBOL. */
RLX_API rlx_dtype_t rlx_compiled_dtype(const rlx_compiled_t *compiled, int32_t kind, size_t slot);

/* Returns the rank of a slot and writes its first `capacity` dims, at the upper sizes. A symbol has rank 1: its
 * upper size. */
RLX_API size_t rlx_compiled_shape(const rlx_compiled_t *compiled, int32_t kind, size_t slot, int64_t *dims,
                                  size_t capacity);

/* Sets one param; the tensor is retained and frozen. What depends on it is computed here, on the caller's thread.
 * Runs in flight finish with the old values, later ones see the new. Errors: RLX_E_NOT_FOUND, RLX_E_DTYPE,
 * RLX_E_SHAPE, RLX_E_STATE for the program of a model (use rlx_model_set_param); nothing changes then. */
RLX_MUST rlx_status_t *rlx_compiled_set_param(rlx_compiled_t *compiled, const char *name, rlx_tensor_t *tensor);

/* Sets every param that the weights (retained) hold, all at once; otherwise as rlx_compiled_set_param. */
RLX_MUST rlx_status_t *rlx_compiled_set_params(rlx_compiled_t *compiled, rlx_weights_t *weights);

/* One run, from any number of threads. in: all inputs, by in_names, or in the order of their slots if that is NULL.
 * out: n_out new host tensors for the outputs in out_names, or for the first n_out. On failure every out[i] is NULL.
 * Errors: RLX_E_INVALID_ARGUMENT (a missing, extra or repeated input; too many outputs),
 * RLX_E_NOT_FOUND (a name), RLX_E_DTYPE, RLX_E_SHAPE (a dim, or inputs that disagree about a size), RLX_E_RANGE (a
 * size above the plan, an index out of bounds), RLX_E_STATE (a param that is not set). */
RLX_MUST rlx_status_t *rlx_compiled_run(rlx_compiled_t *compiled, const char *const *in_names, rlx_tensor_t *const *in,
                                        size_t n_in, const char *const *out_names, rlx_tensor_t **out, size_t n_out);

/* A report: as JSON "dispatch" (the path of every node: native, region, reference, a view, which runs nothing, or the
 * prologue, which ran before; with the reasons of kernels that refused), "passes" (rules that fired, near misses, the
 * time of each pass), "memory" (arena, buffers with lifetime and offset, params, prepared forms), "bindings" (dtype,
 * shape, bytes of every slot); "text": the optimised graph in the format "rlx", and the plan in comments. Errors:
 * RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_compiled_report(const rlx_compiled_t *compiled, const char *what, rlx_blob_t **out);

/* ---- execution contexts: bind once, run many times. A run whose slots have their memory and whose sizes stay
 * allocates nothing. kind: RLX_INPUT or RLX_OUTPUT ---- */

/* A new context with an arena. A slot that nothing is bound to gets memory of its own when it is first needed. Memory
 * that runs write (outputs, linked inputs) overlaps nothing else that is bound: binding it is RLX_E_INVALID_ARGUMENT,
 * or RLX_E_STATE if it is frozen or read-only. options: none so far, may be NULL. Errors: RLX_E_OPTION. */
RLX_MUST rlx_status_t *rlx_exec_create(rlx_compiled_t *compiled, const rlx_attrs_t *options, rlx_exec_t **out);

/* Frees the context, also while runs are in flight: they hold what they use. Tensors got from it live on. NULL:
 * nothing. */
RLX_API void rlx_exec_release(rlx_exec_t *exec);

/* Reads an input from, or writes an output to, this tensor from the next run on. Retained until bound again; NULL:
 * the slot's own memory again. An input's dims give the sizes of the run; an output's bytes must suffice for them.
 * Errors: RLX_E_RANGE (slot), RLX_E_INVALID_ARGUMENT (kind), RLX_E_DTYPE, RLX_E_SHAPE, RLX_E_STATE (an output that is
 * read-only or frozen). */
RLX_MUST rlx_status_t *rlx_exec_bind(rlx_exec_t *exec, int32_t kind, size_t slot, rlx_tensor_t *tensor);

/* As rlx_exec_bind, over the caller's memory, borrowed until the slot is bound again or the context is released;
 * NULL: the slot's own memory again. Memory has no shape: the sizes come from other inputs or rlx_exec_set_dim, else
 * they are the planned ones. bytes must be exact, or with open dims at least what the run needs.
 *     rlx_exec_bind_ptr(exec, RLX_INPUT, 0, data, bytes);      x is f32[batch,3], data holds 2 rows
 *     rlx_exec_set_dim(exec, "batch", 2);
 *     rlx_exec_run(exec);
 * To bind memory with a shape, wrap it: rlx_tensor_wrap and rlx_exec_bind. Errors: RLX_E_RANGE (slot),
 * RLX_E_INVALID_ARGUMENT (kind, bytes). */
RLX_MUST rlx_status_t *rlx_exec_bind_ptr(rlx_exec_t *exec, int32_t kind, size_t slot, void *data, size_t bytes);

/* The memory of a slot, own or bound, as a tensor (a new reference) with the shape that it has now: an input to be
 * written before a run, an output to be read after it. It keeps the memory alive past the context; ask again when a
 * size has changed. Errors: RLX_E_RANGE (slot), RLX_E_INVALID_ARGUMENT (kind). */
RLX_MUST rlx_status_t *rlx_exec_tensor(rlx_exec_t *exec, int32_t kind, size_t slot, rlx_tensor_t **out);

/* Sets a size that no bound input gives, for later runs. The initial size is the planned one. Errors: RLX_E_NOT_FOUND,
 * RLX_E_RANGE (below the declared minimum or above the planned size). */
RLX_MUST rlx_status_t *rlx_exec_set_dim(rlx_exec_t *exec, const char *symbol, int64_t size);

/* At the start of every run but the first, an output slot and an input slot exchange their memory and the input
 * takes the output's sizes: state that is carried from run to run without a copy. Until then the output reads as the
 * last run made it. Errors: RLX_E_RANGE (slot), RLX_E_DTYPE, RLX_E_SHAPE (rank), RLX_E_EXISTS (a slot that is linked
 * already). At a run, both slots must be the context's own or both bound, else that is RLX_E_STATE. */
RLX_MUST rlx_status_t *rlx_exec_link(rlx_exec_t *exec, size_t output, size_t input);

/* Only these n output slots are read back by the next runs; NULL and 0: all. Errors: RLX_E_RANGE. */
RLX_MUST rlx_status_t *rlx_exec_want(rlx_exec_t *exec, const size_t *outputs, size_t n);

/* Options of the runs from now on: there are none yet. Errors: RLX_E_OPTION. */
RLX_MUST rlx_status_t *rlx_exec_set(rlx_exec_t *exec, const rlx_attrs_t *options);

/* Runs and waits, after the runs that were submitted before. Errors: RLX_E_SHAPE, RLX_E_RANGE and RLX_E_STATE as in
 * rlx_compiled_run; RLX_E_SHAPE for a bound output of other dims, RLX_E_INVALID_ARGUMENT for memory that is too small,
 * RLX_E_CANCELLED. The contents of the outputs are unspecified then, links stand as before the run, and the context can
 * be used again. */
RLX_MUST rlx_status_t *rlx_exec_run(rlx_exec_t *exec);

/* Runs without waiting. The run begins when all n_wait fences are done and the runs of this context that were submitted
 * before have ended; runs of several contexts overlap. What is wrong with bindings and sizes is returned here, as by
 * rlx_exec_run; *done tells when the run has ended and how. If a fence in wait ends with a failure, or the run before
 * this one does, the run ends with RLX_E_ABORTED, and links stand as the failed run found them. The context may be used
 * and released meanwhile: bind, rlx_exec_set_dim and others act on later runs. Where a size is decided by data, a call
 * that needs it waits. Memory that is bound stays in use until the fence is done. With the env option threads=0, or
 * with threads of the host, the run is done when this returns; if a fence in wait is open, whoever waits for the run
 * does it. */
RLX_MUST rlx_status_t *rlx_exec_submit(rlx_exec_t *exec, rlx_fence_t *const *wait, size_t n_wait, rlx_fence_t **done);

/* Stops the runs that were begun or submitted before, between two steps: they end with RLX_E_CANCELLED. Later runs are
 * not touched. From any thread, also while another uses the context, and from a signal handler. */
RLX_API void rlx_exec_cancel(rlx_exec_t *exec);

/* A report on the last run, as JSON. "sizes": for each symbol its size and its upper size. Waits for runs in flight.
 * Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_exec_report(rlx_exec_t *exec, const char *what, rlx_blob_t **json);

/* ---- fences: whether work is done. All functions may be called from any thread ---- */

/* A new fence that the caller signals. */
RLX_MUST rlx_status_t *rlx_fence_create(rlx_env_t *env, rlx_fence_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_fence_t *rlx_fence_retain(rlx_fence_t *fence);

/* Gives one reference back; runs go on, an unsignalled fence of the caller's ends RLX_E_ABORTED. NULL: nothing. */
RLX_API void rlx_fence_release(rlx_fence_t *fence);

/* Marks a fence of rlx_fence_create as done. result (taken, also on failure; NULL: success) becomes its status. Errors:
 * RLX_E_STATE for a fence of a run, and for one that is done. */
RLX_MUST rlx_status_t *rlx_fence_signal(rlx_fence_t *fence, rlx_status_t *result);

/* Waits until one of n fences is done, or all of them if all is not 0; *which (may be NULL) is the index of the first
 * that is. timeout_ns: nanoseconds; 0: does not wait; UINT64_MAX: for ever. The calling thread may do the work. What
 * became of it is said by rlx_fence_result. Errors: RLX_E_TIMEOUT. */
RLX_MUST rlx_status_t *rlx_fence_wait(rlx_fence_t *const *fences, size_t n, int32_t all, uint64_t timeout_ns,
                                      size_t *which);

/* The status of the work (NULL while it goes on, and on success). *done (may be NULL): 1 if it has ended, else 0. Never
 * waits. */
RLX_MUST rlx_status_t *rlx_fence_result(const rlx_fence_t *fence, int32_t *done);

/* A file descriptor that becomes readable when the work is done, for poll and its like. The caller closes it. Errors:
 * RLX_E_IO; RLX_E_UNSUPPORTED for a run that no thread of the library would begin (threads=0). */
RLX_MUST rlx_status_t *rlx_fence_export_fd(rlx_fence_t *fence, int32_t *fd);

/* ---- models: one graph at all sizes, compiled on demand ---- */

/* A model of a graph (copied) and its weights (retained, may be NULL). Nothing is compiled yet. policy, may be NULL:
 * any option of rlx_compile, for its plans; cache.capacity (the most plans that a device keeps: 8); buckets.<symbol>
 * (the sizes to plan for, or pow2); chain (devices to try in turn), allow (the only devices to use), deny (devices not
 * to use). Without a chain a run takes the default device, else the first that allow names. "reference" and "null" run
 * only if they are named. Errors: the one that the graph holds; RLX_E_OPTION, also for a device, size or pass that does
 * not exist; RLX_E_INVALID_ARGUMENT for a graph without outputs. */
RLX_MUST rlx_status_t *rlx_model_create(const rlx_graph_t *graph, rlx_weights_t *weights, const rlx_attrs_t *policy,
                                        rlx_model_t **out);

/* rlx_import_file and rlx_model_create in one. policy: options of both; dims.<symbol> is that of rlx_compile. Where an
 * input decides the structure of the graph (the axes of a reduction, say), the model imports the file again for each of
 * its values, up to 64 elements of them: it keeps at most cache.capacity of these; its graph shows inputs and params, and
 * rlx_model_get is RLX_E_UNSUPPORTED. Errors: theirs. */
RLX_MUST rlx_status_t *rlx_model_open(rlx_env_t *env, const char *path, const rlx_attrs_t *policy, rlx_model_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_model_t *rlx_model_retain(rlx_model_t *model);

/* Gives one reference back. NULL: nothing. */
RLX_API void rlx_model_release(rlx_model_t *model);

/* The graph, to ask for names, dtypes and shapes. Borrowed: lives as long as the model; it must not be changed. */
RLX_API const rlx_graph_t *rlx_model_graph(const rlx_model_t *model);

/* Sets one param in every plan, now and later; otherwise as rlx_compiled_set_param. */
RLX_MUST rlx_status_t *rlx_model_set_param(rlx_model_t *model, const char *name, rlx_tensor_t *tensor);

/* Another policy (of rlx_model_create), or NULL for the same one: the plans are forgotten either way, params stay. Runs
 * that go on and programs that rlx_model_get gave are not touched. Errors: RLX_E_OPTION; nothing changes then. */
RLX_MUST rlx_status_t *rlx_model_set_policy(rlx_model_t *model, const rlx_attrs_t *policy);

/* The device that a run with this `device` would take: the first that can run the graph. Compiles for it where nothing
 * did yet. Borrowed from the env. Errors: those of rlx_compile. */
RLX_MUST rlx_status_t *rlx_model_resolve(rlx_model_t *model, const char *device, const rlx_device_t **out);

/* A program planned for at least these n sizes, as a new reference: the smallest that fits, or a new one. device: as
 * in rlx_model_run. Errors: RLX_E_NOT_FOUND (symbol), RLX_E_RANGE (size), RLX_E_SHAPE for a symbol without a size,
 * and those of rlx_compile. */
RLX_MUST rlx_status_t *rlx_model_get(rlx_model_t *model, const char *device, const char *const *symbols,
                                     const int64_t *sizes, size_t n, rlx_compiled_t **out);

/* One run, from any number of threads, at the sizes of the inputs. Compiles if no plan fits. device: a name, a list of
 * names to try in turn ("vulkan,cpu"), or NULL for the policy's. Names, inputs and outputs as in rlx_compiled_run.
 * ran_on: the device that did it, may be NULL. Where the sizes break a condition of the graph, it is made again for
 * these sizes (a size that is 1 then broadcasts), and the run fails only if that fails too; at most cache.capacity of
 * such graphs are kept. Errors: those of rlx_compiled_run and rlx_compile; a size is RLX_E_RANGE only outside its
 * declared range. */
RLX_MUST rlx_status_t *rlx_model_run(rlx_model_t *model, const char *device, const char *const *in_names,
                                     rlx_tensor_t *const *in, size_t n_in, const char *const *out_names,
                                     rlx_tensor_t **out, size_t n_out, const rlx_device_t **ran_on);

/* Times every device of the env that can run the model on these inputs (as in rlx_model_run): once to warm up, then
 * `runs` times. json: for each its name and median_seconds and best_seconds, or why it failed. Errors:
 * RLX_E_INVALID_ARGUMENT (runs below 1), RLX_E_CANCELLED by the host. */
RLX_MUST rlx_status_t *rlx_model_benchmark(rlx_model_t *model, const char *const *in_names, rlx_tensor_t *const *in,
                                           size_t n_in, int32_t runs, rlx_blob_t **json);

/* A report: as JSON "policy", "cache" (the plans that there are, with their sizes), "bindings" (names, dtypes, shapes
 * with their symbols), "devices" (which could run it, and what hinders the others), "special" (graphs made for one
 * set of sizes or values: how many, for which inputs, and why no graph is general); "text": the graph in the format
 * "rlx". Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_model_report(const rlx_model_t *model, const char *what, rlx_blob_t **json);

/* ---- bytes ---- */

/* The bytes. Live as long as the blob; never NULL, "" for a NULL blob. */
RLX_API const void *rlx_blob_data(const rlx_blob_t *blob);

/* How many, without the final 0. */
RLX_API size_t rlx_blob_size(const rlx_blob_t *blob);

/* Takes one more reference and returns its argument. */
RLX_API rlx_blob_t *rlx_blob_retain(rlx_blob_t *blob);

/* Gives one reference back. NULL: nothing. */
RLX_API void rlx_blob_release(rlx_blob_t *blob);

#ifdef __cplusplus
}
#endif
#endif
