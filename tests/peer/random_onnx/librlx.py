# SPDX-License-Identifier: Apache-2.0
"""librlx through its C API, by ctypes alone."""
import ctypes as c

import numpy as np

from .graph import DTYPES, NAMES

CODES = {"f32": 1, "f16": 2, "bf16": 3, "f64": 4, "i8": 5, "i16": 6, "i32": 7, "i64": 8, "u8": 9, "u16": 10, "u32": 11, "u64": 12,
         "bool": 13}
DTYPE_OF = {code: DTYPES[name] for name, code in CODES.items()}
HANDLE, NAMES_IN, COUNT = c.c_void_p, c.POINTER(c.c_char_p), c.c_size_t
DIMS, OUT = c.POINTER(c.c_int64), c.POINTER(c.c_void_p)
SIGNATURES = {  # result, then parameters
    "rlx_code_name": (c.c_char_p, c.c_int32),
    "rlx_status_code": (c.c_int32, HANDLE),
    "rlx_status_message": (c.c_char_p, HANDLE),
    "rlx_status_release": (None, HANDLE),
    "rlx_attrs_create": (HANDLE, c.c_char_p, OUT),
    "rlx_attrs_release": (None, HANDLE),
    "rlx_env_create": (HANDLE, HANDLE, HANDLE, OUT),
    "rlx_tensor_copy_from": (HANDLE, HANDLE, c.c_int32, DIMS, COUNT, c.c_void_p, COUNT, OUT),
    "rlx_tensor_dtype": (c.c_int32, HANDLE),
    "rlx_tensor_shape": (COUNT, HANDLE, DIMS, COUNT),
    "rlx_tensor_bytes": (COUNT, HANDLE),
    "rlx_tensor_data": (c.c_void_p, HANDLE),
    "rlx_tensor_release": (None, HANDLE),
    "rlx_model_open": (HANDLE, HANDLE, c.c_char_p, HANDLE, OUT),
    "rlx_model_run": (HANDLE, HANDLE, c.c_char_p, NAMES_IN, OUT, COUNT, NAMES_IN, OUT, COUNT, OUT),
    "rlx_model_release": (None, HANDLE),
}


class Error(Exception):
    pass


class Library:
    def __init__(self, path):
        library = c.CDLL(str(path))
        for name, (result, *parameters) in SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
            setattr(self, name, function)
        self.env, attrs = c.c_void_p(), c.c_void_p()
        self.check(self.rlx_attrs_create(b"threads=0", c.byref(attrs)))
        self.check(self.rlx_env_create(attrs, None, c.byref(self.env)))
        self.rlx_attrs_release(attrs)

    def check(self, status):
        if status:
            name, words = self.rlx_code_name(self.rlx_status_code(status)), self.rlx_status_message(status)
            self.rlx_status_release(status)
            raise Error(f"{name.decode()}: {words.decode(errors='replace')}")

    def tensor(self, array):
        array, tensor = np.asarray(array, order="C"), c.c_void_p()
        dims = (c.c_int64 * array.ndim)(*array.shape)
        self.check(self.rlx_tensor_copy_from(self.env, CODES[NAMES[array.dtype]], dims, array.ndim, array.ctypes.data, array.nbytes,
                                             c.byref(tensor)))
        return tensor.value

    def taken(self, tensor):
        shape = (c.c_int64 * 8)()
        rank = self.rlx_tensor_shape(tensor, shape, 8)
        dtype = DTYPE_OF[self.rlx_tensor_dtype(tensor)]
        count = self.rlx_tensor_bytes(tensor)
        data = c.string_at(self.rlx_tensor_data(tensor), count) if count else b""
        self.rlx_tensor_release(tensor)
        return np.frombuffer(data, dtype).reshape(shape[:rank])


class Model:
    def __init__(self, library, path):
        self.library, self.handle = library, c.c_void_p()
        library.check(library.rlx_model_open(library.env, str(path).encode(), None, c.byref(self.handle)))

    def run(self, feed, outputs, device=None):
        library, out, tensors = self.library, (c.c_void_p * len(outputs))(), []
        try:
            for array in feed.values():
                tensors.append(library.tensor(array))
            names, results = ((c.c_char_p * len(texts))(*[text.encode() for text in texts]) for texts in (feed, outputs))
            library.check(library.rlx_model_run(self.handle, device, names, (c.c_void_p * len(tensors))(*tensors), len(tensors),
                                                results, out, len(outputs), None))
        finally:
            for tensor in tensors:
                library.rlx_tensor_release(tensor)
        return dict(zip(outputs, map(library.taken, out)))

    def close(self):
        self.library.rlx_model_release(self.handle)
