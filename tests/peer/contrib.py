# SPDX-License-Identifier: Apache-2.0
"""One ONNX file with a node of each kind of the domain com.microsoft, and what ONNX Runtime computes for them.

    python contrib.py ../models/contrib.onnx ../models/contrib_expected.tensors

On a processor without dot products of bytes (VNNI), ONNX Runtime's sums of products of u8 and i8 saturate at 16 bits: results of
such kinds that are in the second file already are kept.

A case is (name, kind, inputs, attributes). Its values are named NAME.x0, NAME.x1 ..., NAME.y0 ...; `const` says which
inputs are initializers, `outputs` which outputs are compared. Needs numpy, onnx, onnxruntime and ml_dtypes.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from tensors import read_tensors, write_tensors

random = np.random.default_rng(5)
cases = []


def f32(*dims):
    return random.standard_normal(dims).astype(np.float32)


def positive(*dims):
    return (0.1 * random.random(dims)).astype(np.float32)


def u8(*dims):
    return random.integers(0, 256, dims).astype(np.uint8)


def i8(*dims):
    return random.integers(-127, 128, dims).astype(np.int8)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


def integers(values, dtype=np.int32):
    return np.array(values, dtype)


def case(name, kind, inputs, outputs=(0,), const=(), domain="com.microsoft", **attributes):
    cases.append((name, kind, inputs, outputs, const, domain, attributes))


def norms_and_activations():
    x = f32(2, 3, 8)
    ids = random.integers(0, 10, (2, 3)).astype(np.int32)
    case("simplified_layer_norm", "SimplifiedLayerNormalization", [x, f32(8)], domain="", epsilon=1e-5, axis=-1)
    case("skip_layer_norm", "SkipLayerNormalization", [x, f32(2, 3, 8), f32(8), f32(8), f32(8)], (0, 3), epsilon=1e-5)
    case("skip_layer_norm_of_rows", "SkipLayerNormalization", [x, f32(3, 8), f32(8)])
    case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, f32(2, 3, 8), f32(8), f32(8)], (0, 3), epsilon=1e-6)
    case("embed", "EmbedLayerNormalization", [ids, ids % 2, f32(10, 8), f32(6, 8), f32(2, 8), f32(8), f32(8), (ids > 2).astype(np.int32)],
         (0, 1, 2), (2, 3, 4, 5, 6), epsilon=1e-6)
    case("embed_bare", "EmbedLayerNormalization", [ids, None, f32(10, 8), f32(6, 8), None, f32(8), f32(8)], (0, 1), (2, 3, 5, 6))
    case("gelu", "Gelu", [x])
    case("bias_gelu", "BiasGelu", [x, f32(8)])
    case("fast_gelu", "FastGelu", [x, f32(8)])
    case("fast_gelu_bare", "FastGelu", [x])
    case("quick_gelu", "QuickGelu", [x], alpha=1.5)


def products():
    case("fused_matmul", "FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], transA=1, transB=1, alpha=0.5)
    case("fused_matmul_batch", "FusedMatMul", [f32(4, 2, 3), f32(2, 3, 5)], transBatchA=1)
    case("transpose_matmul", "TransposeMatMul", [f32(2, 4, 3), f32(4, 5)], transA=1)
    case("fused_gemm", "FusedGemm", [f32(3, 4), f32(5, 4), f32(5)], transB=1, alpha=0.5, beta=2.0, activation="Relu")
    case("fused_gemm_leaky", "FusedGemm", [f32(3, 4), f32(4, 5), f32(5)], activation="LeakyRelu", activation_alpha=0.2)
    x, w, bias = f32(1, 3, 6, 6), f32(4, 3, 3, 3), f32(4)
    case("fused_conv", "FusedConv", [x, w, bias], const=(1, 2), activation="Relu", pads=[1, 1, 1, 1])
    case("fused_conv_sum", "FusedConv", [x, w, bias, f32(1, 4, 6, 6)], const=(1, 2), activation="LeakyRelu", activation_params=[0.2],
         pads=[1, 1, 1, 1])
    case("distance", "CDist", [f32(3, 4), f32(5, 4)], metric="euclidean")
    case("distance_squared", "CDist", [f32(3, 4), f32(5, 4)], metric="sqeuclidean")
    case("inverse", "Inverse", [f32(2, 3, 3)])


def as_in_onnx():
    case("expand_dims", "ExpandDims", [f32(2, 3), number(-2, np.int32)], const=(1,))
    case("trilu", "Trilu", [f32(4, 5), number(1, np.int64)], const=(1,), upper=0)
    case("range", "Range", [number(i, np.int64) for i in (1, 9, 3)], const=(0, 1, 2))
    case("pad", "Pad", [f32(2, 3), integers([0, 1, 1, 2], np.int64), number(0.5)], const=(1,), mode="constant")
    case("gather_nd", "GatherND", [f32(3, 4), integers([[0, 1], [2, 3]], np.int64)])
    case("grid_sample", "GridSample", [f32(1, 2, 4, 4), np.clip(f32(1, 3, 3, 2) / 2, -1, 1)], align_corners=0, mode="bilinear")


def multi_head_attention():
    q, k, v = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8)
    ones = integers([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
    kind = "MultiHeadAttention"
    case("heads", kind, [q, k, v], num_heads=2)
    case("heads_bias_mask", kind, [q, k, v, f32(24), ones, f32(1, 2, 3, 5)], num_heads=2, scale=0.3)
    case("heads_lengths", kind, [q, k, v, None, integers([3, 5])], num_heads=2)
    case("heads_mask_of_queries", kind, [q, k, v, None, (random.random((2, 3, 5)) < 0.7).astype(np.int32)], num_heads=2)
    case("heads_cross", kind, [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], num_heads=2)
    case("heads_past", kind, [q, f32(2, 3, 8), f32(2, 3, 8), None, None, None, f32(2, 2, 4, 4), f32(2, 2, 4, 4)], (0, 1, 2), num_heads=2,
         unidirectional=1)


def attention():
    x, w, bias = f32(2, 3, 8), f32(8, 24), f32(24)
    case("packed", "Attention", [x, w, bias], num_heads=2)
    case("packed_mask", "Attention", [x, w, bias, integers([[1, 1, 0], [1, 1, 1]])], num_heads=2)
    case("packed_lengths", "Attention", [x, w, bias, integers([2, 3])], num_heads=2)
    case("packed_begin", "Attention", [x, w, bias, integers([3, 3, 1, 0])], num_heads=2)
    case("packed_past", "Attention", [x, w, bias, None, f32(2, 2, 2, 4, 4)], (0, 1), num_heads=2, unidirectional=1)
    case("packed_sizes", "Attention", [x, f32(8, 28), f32(28)], num_heads=2, qkv_hidden_sizes=[8, 8, 12])
    case("packed_bias", "Attention", [x, w, bias, None, None, f32(2, 2, 3, 3)], num_heads=2, scale=0.4)
    quantised = [u8(2, 3, 8), i8(8, 24), f32(24), number(0.02), number(0.03), None, number(120, np.uint8), number(2, np.int8)]
    case("packed_quantised", "QAttention", quantised, const=(1, 2, 4, 7), num_heads=2)
    case("packed_quantised_past", "QAttention", [*quantised, f32(2, 2, 2, 4, 4)], (0, 1), (1, 2, 4, 7), num_heads=2, unidirectional=1)


def grouped(name, batch, steps, past, last, outputs=(0, 1, 2), rotate=1, packed=False, positions=None, bias=None, sinks=None, **attributes):
    q, k, v = f32(batch, steps, 64), f32(batch, steps, 32), f32(batch, steps, 32)
    if packed:
        q, k, v = np.concatenate([q, k, v], -1), None, None
    angle = np.outer(np.arange(32), 0.01 ** (np.arange(8) / 8)).astype(np.float32)
    tables = [np.cos(angle), np.sin(angle)] if rotate else [None, None]
    caches = [f32(batch, 2, past, 16), f32(batch, 2, past, 16)]
    inputs = [q, k, v, *caches, integers(last), number(max(last) + 1, np.int32), *tables, positions, bias, sinks]
    case(name, "GroupQueryAttention", inputs, outputs, (7, 8), num_heads=4, kv_num_heads=2, do_rotary=rotate, **attributes)


def grouped_attention():
    grouped("grouped_first", 2, 5, 0, [4, 4])
    grouped("grouped_step", 1, 1, 6, [6])
    grouped("grouped_step_of_two", 2, 1, 6, [6, 4], (0,))
    grouped("grouped_interleaved", 1, 2, 6, [7], rotary_interleaved=1)
    grouped("grouped_packed", 1, 1, 6, [6], packed=True)
    grouped("grouped_window", 1, 1, 9, [9], rotate=0, local_window_size=4)
    grouped("grouped_window_first", 1, 7, 0, [6], rotate=0, local_window_size=3)
    grouped("grouped_softcap", 1, 3, 4, [6], rotate=0, softcap=2.0, scale=0.5)
    grouped("grouped_smooth", 1, 3, 4, [6], rotate=0, smooth_softmax=1)
    grouped("grouped_sinks", 1, 3, 4, [6], rotate=0, sinks=f32(4))
    grouped("grouped_bias", 1, 3, 4, [6], rotate=0, bias=f32(1, 4, 3, 7))
    grouped("grouped_buffer", 1, 1, 12, [6], (0,))
    grouped("grouped_positions", 1, 2, 6, [7], positions=integers([[3, 9]], np.int64))
    tables = [f32(10, 4), f32(10, 4)]
    case("rotary", "RotaryEmbedding", [f32(2, 3, 16), integers([2], np.int64), *tables])
    case("rotary_positions", "RotaryEmbedding", [f32(2, 3, 16), integers([[1, 2, 3], [4, 5, 6]], np.int64), *tables], interleaved=1)
    case("rotary_heads", "RotaryEmbedding", [f32(2, 2, 3, 8), integers([0], np.int64), *tables])
    case("rotary_part", "RotaryEmbedding", [f32(2, 3, 16), integers([0], np.int64), f32(10, 2), f32(10, 2)], num_heads=2, rotary_embedding_dim=4)


def quantised():
    def values(*dims, scale=0.02, zero=120):
        return [u8(*dims), number(scale), number(zero, np.uint8)]

    result = [number(0.0437), number(110, np.uint8)]  # no result lies between two numbers
    small = [number(1 / 256), number(0, np.uint8)]
    case("q_add", "QLinearAdd", [*values(2, 3, 4), *values(3, 4), *result])
    case("q_add_i8", "QLinearAdd", [i8(2, 4), number(0.02), number(3, np.int8), i8(2, 4), number(0.03), number(-3, np.int8), number(0.05), number(1, np.int8)])
    case("q_mul", "QLinearMul", [*values(2, 3, 4), *values(3, 4), *result])
    case("q_sigmoid", "QLinearSigmoid", [*values(3, 4), *small])
    case("q_leaky", "QLinearLeakyRelu", [*values(3, 4), *result], alpha=0.1)
    case("q_softmax", "QLinearSoftmax", [*values(3, 4), *small], axis=-1, opset=13)
    case("q_softmax_old", "QLinearSoftmax", [*values(3, 2, 4), *small], axis=1, opset=11)
    case("q_concat", "QLinearConcat", [*result, *values(2, 3), *values(2, 4, scale=0.04)], axis=1)
    case("q_where", "QLinearWhere", [random.random((2, 3)) < 0.5, *values(2, 3), *values(2, 3, scale=0.03), *result])
    case("q_global_average", "QLinearGlobalAveragePool", [*values(2, 3, 4, 4), *result], channels_last=0)
    case("q_global_average_last", "QLinearGlobalAveragePool", [*values(2, 4, 4, 3), *result], channels_last=1)
    case("q_average", "QLinearAveragePool", [*values(1, 2, 6, 6), *result], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    case("q_average_last", "QLinearAveragePool", [*values(1, 6, 6, 2), *result], kernel_shape=[2, 2], strides=[2, 2], channels_last=1)
    case("to_float", "MatMulIntegerToFloat", [u8(3, 8), i8(8, 5), number(0.02), positive(5), number(120, np.uint8), i8(5), f32(5)], const=(1, 3, 5))
    case("dynamic", "DynamicQuantizeMatMul", [f32(3, 8), i8(8, 5), positive(5), None, f32(5)], const=(1, 2, 4))
    case("dynamic_zero", "DynamicQuantizeMatMul", [f32(2, 3, 8), u8(8, 5), positive(1), integers([128], np.uint8)], const=(1, 2, 3))
    bias = integers(random.integers(-500, 500, 5))
    case("q_gemm", "QGemm", [*values(3, 8), i8(8, 5), number(0.05), number(0, np.int8), bias, *result])
    case("q_gemm_float", "QGemm", [*values(3, 8), i8(5, 8), positive(5), np.zeros(5, np.int8), bias], const=(3, 4, 5), transB=1, alpha=0.5)
    rows = integers([[1, 5], [0, 2]], np.int64)
    case("blocks", "GatherBlockQuantized", [u8(6, 16), rows, positive(6, 2)], const=(0, 2), block_size=16, quantize_axis=1, bits=4)
    case("blocks_zero", "GatherBlockQuantized", [u8(6, 16), rows, positive(6, 2), u8(6, 1)], const=(0, 2, 3), block_size=16, quantize_axis=1, bits=4)
    case("blocks_of_bytes", "GatherBlockQuantized", [u8(6, 32), rows, positive(6, 2)], const=(0, 2), block_size=16, quantize_axis=1, bits=8)


def recurrent():
    def lstm(name, directions, by_column=False, state=(None, None), **attributes):
        dims = (directions, 12) if by_column else (directions,)
        scales = [positive(*dims) / 5, np.zeros(dims, np.int8), positive(*dims) / 5, np.zeros(dims, np.int8)]
        inputs = [f32(6, 2, 4), i8(directions, 4, 12), i8(directions, 3, 12), f32(directions, 24), None, *state, None, *scales]
        case(name, "DynamicQuantizeLSTM", inputs, (0, 1, 2), (1, 2, 3, 8, 9, 10, 11), hidden_size=3, **attributes)

    lstm("lstm", 1)
    lstm("lstm_columns", 1, by_column=True)
    lstm("lstm_both", 2, state=(f32(2, 2, 3), f32(2, 2, 3)), direction="bidirectional")


def experts():
    x, logits = f32(2, 3, 8), f32(6, 4)
    banks = [f32(4, 5, 8), None, f32(4, 8, 5)]
    case("experts", "MoE", [x, logits, *banks], const=(2, 4), k=2, activation_type="silu")
    case("experts_normal", "MoE", [f32(6, 8), logits, f32(4, 5, 8), f32(4, 5), f32(4, 8, 5), f32(4, 8)], const=(2, 3, 4, 5), k=2,
         normalize_routing_weights=1, activation_type="relu")
    case("experts_gelu", "MoE", [x, logits, *banks], const=(2, 4), k=1, activation_type="gelu")
    case("experts_identity", "MoE", [x, logits, f32(4, 5, 8), f32(4, 5), f32(4, 8, 5)], const=(2, 3, 4), k=3, activation_type="identity")
    case("experts_gelu_bias", "MoE", [x, logits, f32(4, 5, 8), f32(4, 5), f32(4, 8, 5)], const=(2, 3, 4), k=2, activation_type="gelu")
    pairs = [f32(4, 10, 8), f32(4, 10), f32(4, 8, 5), f32(4, 8)]
    case("experts_swiglu", "MoE", [x, logits, *pairs], const=(2, 3, 4, 5), k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702,
         activation_beta=1.0, swiglu_limit=2.0, normalize_routing_weights=1)


def decoders():
    kind = "DecoderMaskedMultiHeadAttention"
    q, k, v = f32(2, 1, 8), f32(2, 1, 8), f32(2, 1, 8)
    buffers = [f32(2, 2, 7, 4), f32(2, 2, 7, 4), integers([4])]
    case("decoder", kind, [q, k, v, None, None, *buffers], (0, 1, 2), num_heads=2, past_present_share_buffer=1)
    case("decoder_mask", kind, [q, k, v, integers([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1]]), f32(1, 2, 1, 5), *buffers], (0, 1, 2),
         num_heads=2, scale=0.4, past_present_share_buffer=1)
    case("decoder_cross", kind, [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], num_heads=2)


def states():
    x, w, bias = f32(2, 4, 6), f32(4, 1, 3), f32(4)
    case("causal", "CausalConvWithState", [x, w, bias, f32(2, 4, 2)], (0, 1), activation="silu")
    case("causal_bare", "CausalConvWithState", [x, w], (0, 1))
    case("causal_wide", "CausalConvWithState", [x, w, bias, f32(2, 4, 4)], (0, 1), dilation=2)
    case("causal_last", "CausalConvWithState", [f32(2, 6, 4), w, bias, f32(2, 2, 4)], (0, 1), channels_last=1)
    q, k, v, state = f32(2, 3, 16), f32(2, 3, 8) / 4, f32(2, 3, 6), f32(2, 2, 4, 3)
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    kind = "LinearAttention"
    case("linear", kind, [q, k, v], (0, 1), update_rule="linear", **heads)
    case("linear_gated", kind, [q, k, v, state, -positive(2, 3, 8)], (0, 1), update_rule="gated", **heads)
    case("linear_delta", kind, [q, k, v, state, None, positive(2, 3, 2)], (0, 1), update_rule="delta", scale=0.3, **heads)
    case("linear_both", kind, [q, k, v, state, -positive(2, 3, 2), positive(2, 3, 1)], (0, 1), update_rule="gated_delta", **heads)


def more_products():
    for name, kind in (("fp4", 0), ("nf4", 1)):
        case(name, "MatMulBnb4", [f32(2, 3, 32), u8(80), positive(10)], const=(1, 2), K=32, N=5, block_size=16, quant_type=kind)
    x, w = f32(1, 2, 4, 4), f32(2, 3, 3, 3)
    case("dynamic_pads", "ConvTransposeWithDynamicPads", [x, w, integers([1, 0, 1, 2], np.int64), f32(3)], const=(1, 2, 3), strides=[2, 2],
         kernel_shape=[3, 3])
    case("pool_last", "NhwcMaxPool", [u8(1, 5, 6, 3)], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0])
    case("pool_last_same", "NhwcMaxPool", [i8(1, 5, 6, 3)], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    ids = integers(random.integers(0, 10, (2, 3)))
    tables = [u8(10, 8), u8(6, 8), u8(2, 8), u8(8), u8(8)]
    rest = [number(value) for value in (0.02, 0.03, 0.01, 0.01, 0.02)] + [number(value, np.uint8) for value in (120, 130, 110, 100, 140)]
    case("q_embed", "QEmbedLayerNormalization", [ids, ids % 2, *tables, (ids >= 0).astype(np.int32), *rest], (0, 1),
         (2, 3, 4, 5, 6, *range(8, 18)), epsilon=1e-6)


def quantised_experts():
    """Which it computes with routing weights that are normalised whatever the attribute says."""
    def bank(rows, columns, bits, block=0, with_zeros=False):
        count = 8 // bits
        shape = (4, rows, columns // block) if block else (4, rows)
        zeros = u8(4, rows, (columns // block + count - 1) // count) if with_zeros else None
        return [u8(4, rows, columns // count), positive(*shape), f32(4, rows)], zeros

    x, logits = f32(6, 32), f32(6, 4)
    for name, bits, block, with_zeros, activation in (
            ("bytes", 8, 0, False, "silu"), ("nibbles", 4, 0, False, "relu"), ("blocks", 4, 16, False, "gelu"), ("pairs", 2, 16, False, "identity"),
            ("zeros", 4, 16, True, "silu"), ("swiglu", 4, 16, True, "swiglu")):
        is_pair = activation == "swiglu"
        up, up_zeros = bank(64 if is_pair else 32, 32, bits, block, with_zeros)
        down, down_zeros = bank(32, 32, bits, block, with_zeros)
        zeros = [None] * 3 + [up_zeros, down_zeros] if with_zeros else []
        const = (2, 3, 4, 5, 6, 7) + ((11, 12) if with_zeros else ())
        more = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 7.0} if is_pair else {}
        more |= {"block_size": block} if block else {}
        case("experts_of_" + name, "QMoE", [x, logits, *up, *down, *zeros], const=const, k=2, normalize_routing_weights=1,
             expert_weight_bits=bits, activation_type=activation, **more)


def hybrid_decoders():
    x = f32(2, 3, 8)
    case("gated_norm", "GatedRMSNorm", [x, f32(4), f32(2, 3, 8)], epsilon=1e-3)
    case("gated_norm_sigmoid", "GatedRMSNorm", [x, f32(8), f32(2, 3, 8)], activation="sigmoid")
    case("branch_norm", "BranchwiseRMSNorm", [f32(2, 3, 4), f32(3, 4)])
    case("branch_norm_flat", "BranchwiseRMSNorm", [x, f32(8)], num_branches=2, epsilon=1e-3)
    case("branch_norm_bare", "BranchwiseRMSNorm", [x], num_branches=4)
    case("attention_gate", "LinearAttentionGate", [x, f32(8), f32(8), f32(2, 3, 8)], (0, 1))
    case("scaled_silu", "ScaledSiLU", [x], alpha=0.7)
    case("scaled_silu_by_input", "ScaledSiLU", [x, number(-1.3)], alpha=0.7)
    case("gated_add", "GatedAdd", [x, f32(2, 3, 8), f32(2, 3, 1)])
    tables, positions = [f32(20, 4), f32(20, 4)], random.integers(0, 20, (3, 2, 3))
    case("three_positions", "MRotaryEmbedding", [f32(2, 3, 16), positions, *tables], mrope_section=[1, 1, 2], num_heads=2)
    case("three_positions_mixed", "MRotaryEmbedding", [f32(2, 2, 3, 8), positions, *tables], mrope_section=[2, 1, 1], mrope_layout=1, interleaved=1)
    case("three_positions_part", "MRotaryEmbedding", [f32(2, 3, 24), positions, *tables], mrope_section=[2, 1, 1], num_heads=2, rotary_embedding_dim=8,
         scale=0.5)


def as_in_onnx_but_wider():
    tables = [f32(10, 2), f32(10, 2)]
    case("rotary_scaled", "RotaryEmbedding", [f32(2, 3, 16), integers([0], np.int64), *tables], num_heads=2, rotary_embedding_dim=4, scale=0.5)
    x = f32(3, 4)
    case("quantize_u16", "QuantizeLinear", [x, number(1e-4), number(30000, np.uint16)], const=(1, 2))
    case("quantize_i16_rows", "QuantizeLinear", [x, positive(3) / 50 + 1e-4, integers([5, -7, 0], np.int16)], const=(1, 2), axis=0)
    case("dequantize_u16", "DequantizeLinear", [random.integers(0, 65536, (3, 4)).astype(np.uint16), number(1e-4), number(30000, np.uint16)], const=(1, 2))
    case("dequantize_i32", "DequantizeLinear", [integers([[1, -2], [3, 400000]]), number(0.25)], const=(1,))
    values = [u8(1, 5, 6, 3), number(0.02), number(120, np.uint8), i8(4, 3, 3, 3) // 3, positive(4), np.zeros(4, np.int8), number(0.0437), number(110, np.uint8)]
    case("q_conv", "QLinearConv", [np.ascontiguousarray(np.moveaxis(values[0], 3, 1)), *values[1:]], const=range(3, 8), pads=[1, 0, 1, 2])
    case("q_conv_last", "QLinearConv", [*values, integers([500, -300, 0, 70])], const=range(3, 9), channels_last=1, strides=[2, 2], auto_pad="SAME_UPPER")
    case("q_average_last_same", "QLinearAveragePool", [u8(1, 5, 6, 2), *values[1:3], *values[6:]], kernel_shape=[3, 2], strides=[2, 2], channels_last=1,
         auto_pad="SAME_LOWER")
    case("matmul_i16", "MatMulInteger16", [random.integers(-999, 999, (2, 3)).astype(np.int16), random.integers(-999, 999, (3, 4)).astype(np.int16)])
    case("unfold", "UnfoldTensor", [f32(2, 7, 3)], dim=1, size=3, step=2)
    case("unfold_last", "UnfoldTensor", [f32(2, 4)], size=2)


def blocks_and_boxes():
    rows, columns = [[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]], [[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]]
    tables = [f32(64, 8), f32(64, 8)]

    def sparse(name, steps, lengths, packed=False, rotate=0, **attributes):
        batch = len(lengths)
        q, k, v = f32(batch, steps, 32), f32(batch, steps, 16), f32(batch, steps, 16)
        if packed:
            q, k, v = np.concatenate([q, k, v], -1), None, None
        caches = [f32(batch, 1, 64, 16), f32(batch, 1, 64, 16)]
        inputs = [q, k, v, *caches, integers(rows), integers(columns), number(max(lengths), np.int32), integers(lengths),
                  *(tables if rotate else [])]
        case(name, "SparseAttention", inputs, (0, 1, 2), (5, 6, 7), num_heads=2, kv_num_heads=1, sparse_block_size=16, do_rotary=rotate, **attributes)

    sparse("sparse_first", 20, [20])
    sparse("sparse_first_rotated", 18, [18], packed=True, rotate=1)
    sparse("sparse_step", 1, [60], rotate=1, scale=0.5)
    boxes, images = np.array([[0, 0, 1, 1], [0.2, 0.15, 0.7, 0.87], [-0.3, 0.45, 0.4, 1.2], [0.9, 0.8, 0.1, 0.2]], np.float32), integers([0, 1, 1, 0])
    x = f32(2, 3, 5, 6)
    case("crops", "CropAndResize", [x, boxes, images, integers([3, 4])], const=(3,), extrapolation_value=0.5)
    case("crops_nearest", "CropAndResize", [x, boxes, images, integers([1, 4])], const=(3,), mode="nearest")
    rois = np.array([[0, 0, 0, 5, 4], [1, 1, 2, 3, 3], [1, 4, 4, 9, 9], [0, 3, 1, 2, 0]], np.float32)
    case("roi_pool", "MaxRoiPool", [x, rois], domain="", pooled_shape=[2, 3])
    case("roi_pool_scaled", "MaxRoiPool", [x, rois], domain="", pooled_shape=[3, 2], spatial_scale=0.6)


def streams():
    x, block = f32(2, 3, 4, 5), f32(2, 3, 5)
    case("pre_mix", "HyperConnectionPreMix", [x, f32(2, 3, 4)], reduction_scale=0.5)
    case("pre_mix_flat", "HyperConnectionPreMix", [f32(2, 3, 20), f32(2, 3, 20)], num_branches=4)
    case("post_mix", "HyperConnectionPostMix", [x, block, f32(2, 3, 4, 1), f32(2, 3, 4, 4)])
    case("post_mix_flat", "HyperConnectionPostMix", [f32(2, 3, 20), block, f32(2, 3, 4)], num_branches=4)
    case("heads_causal", "MultiHeadAttention", [f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8)], num_heads=2, unidirectional=1)
    case("engram", "EngramGate", [x, f32(2, 3, 4, 5), block, f32(4, 5), f32(4, 5), f32(4, 5)], (0, 1), epsilon=1e-3)


def masks_and_activations():
    kind = "MultiHeadAttention"
    q, k, v, past = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8), f32(2, 2, 2, 4)
    case("heads_joined_rows", kind, [q, k, v, None, integers([5, 3, 0, 3, 6, 0, 5, 10])], num_heads=2)
    case("heads_causal_past", kind, [q, k, v, None, None, None, past, f32(2, 2, 2, 4)], (0, 1, 2), num_heads=2, unidirectional=1)
    for activation in ("Selu", "ScaledTanh", "ParametricSoftplus"):
        case("fused_gemm_" + activation.lower(), "FusedGemm", [f32(3, 4), f32(4, 5), f32(5)], activation=activation, activation_alpha=0.3,
             activation_beta=0.6, activation_gamma=1.1)


def built():
    """The graph of all cases, and its inputs."""
    nodes, inputs, outputs, initializers, given = [], [], [], [], {}
    for name, kind, values, shown, const, domain, attributes in cases:
        names = [f"{name}.x{i}" if value is not None else "" for i, value in enumerate(values)]
        while not names[-1]:
            names.pop()
        for i, (value_name, value) in enumerate(zip(names, values)):
            if not value_name:
                continue
            if i in const:
                initializers.append(numpy_helper.from_array(value, value_name))
            else:
                given[value_name] = value
                inputs.append(helper.make_tensor_value_info(value_name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        made = range(3) if kind == "GroupQueryAttention" else shown  # which computes something else where it has no cache to give
        results = [f"{name}.y{i}" if i in made else "" for i in range(max(made) + 1)]
        outputs += [onnx.ValueInfoProto(name=f"{name}.y{i}") for i in shown]
        nodes.append(helper.make_node(kind, names, results, name=name, domain=domain, **attributes))
    graph = helper.make_graph(nodes, "contrib", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), given


def run(session, given):
    """Its outputs by name. SparseAttention writes into the memory of its caches."""
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value.copy()) for name, value in given.items()}
    shared = {f"{case[0]}.y{i}": values[f"{case[0]}.x{i + 2}"] for case in cases if case[1] == "SparseAttention" for i in (1, 2)}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    names = [output.name for output in session.get_outputs()]
    for name in names:
        if name in shared:
            binding.bind_ortvalue_output(name, shared[name])
        else:
            binding.bind_output(name)
    session.run_with_iobinding(binding)
    return dict(zip(names, binding.copy_outputs_to_cpu()))


def main(model_path, tensors_path):
    for family in (norms_and_activations, products, as_in_onnx, multi_head_attention, attention, grouped_attention, quantised, recurrent, experts, decoders, states,
                   more_products, quantised_experts, hybrid_decoders, as_in_onnx_but_wider,
                   blocks_and_boxes, streams, masks_and_activations):
        family()
    model, given = built()
    onnx.save(model, model_path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model_path, options)
    made = run(session, given)
    kept = read_tensors(tensors_path) if os.path.exists(tensors_path) else {}
    made |= {name: value for name, value in kept.items() if name in made}
    write_tensors(tensors_path, {**given, **made})
    print(f"{len(cases)} cases, {len(made)} outputs")


if __name__ == "__main__":
    main(*sys.argv[1:])
