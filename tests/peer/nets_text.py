# SPDX-License-Identifier: Apache-2.0
"""Networks of text by transformers: configurations of two layers, random weights."""

import torch
import transformers

from export import padded
from nets import HEADS, HIDDEN, INNER, KV_HEADS, LAYERS, VOCAB, called, net_of_floats

BERT_LIKE = dict(
    vocab_size=VOCAB,
    hidden_size=HIDDEN,
    num_hidden_layers=LAYERS,
    num_attention_heads=HEADS,
    intermediate_size=INNER,
    max_position_embeddings=80,
)
LLAMA_LIKE = BERT_LIKE | dict(num_key_value_heads=KV_HEADS, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def config(kind, base=BERT_LIKE, **more):
    return transformers.AutoConfig.for_model(kind, **(base | more))


def hidden(net, ids, mask):
    return net(input_ids=ids, attention_mask=mask).last_hidden_state


def encoder(kind, base=BERT_LIKE, call=hidden, make=None, **more):
    """Tokens and a mask that is padded on the right."""
    net = make(kind, base, more) if make else transformers.AutoModel.from_config(config(kind, base, **more))

    def draw(generator, batch, sequence):
        return torch.randint(3, VOCAB, (batch, sequence), generator=generator), padded(generator, batch, sequence)

    axes = {0: "batch", 1: "sequence"}
    return called(
        net,
        call,
        {"input_ids": axes, "attention_mask": axes},
        {"y": {0: "batch"}},
        draw,
        [dict(batch=1, sequence=5), dict(batch=2, sequence=12), dict(batch=3, sequence=40)],
        dict(batch=2, sequence=8),
    )


def step(net, ids, mask, *past):
    """New tokens after a cache of `past` rows; the grown cache is a result."""
    cache = transformers.DynamicCache()
    for layer in range(len(past) // 2):
        cache.update(past[2 * layer], past[2 * layer + 1], layer)
    result = net(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
    return (result.logits, *(t for layer in result.past_key_values.layers for t in (layer.keys, layer.values)))


def causal(kind, base, more):
    net = transformers.AutoModelForCausalLM.from_config(config(kind, base, **more))
    if "num_experts_per_tok" in more:
        net.set_experts_implementation("batched_mm")  # no exporter takes the others
    return net


def decoder(kind, base=LLAMA_LIKE, **more):
    net = causal(kind, base, more).eval()
    with torch.no_grad():
        empty = transformers.DynamicCache()
        layers = net(torch.ones(1, 2, dtype=torch.long), past_key_values=empty, use_cache=True).past_key_values.layers
    shapes = [t.shape for layer in layers for t in (layer.keys, layer.values)]

    def draw(generator, batch, sequence, past):
        ids = torch.randint(3, VOCAB, (batch, sequence), generator=generator)
        mask = torch.ones(batch, past + sequence, dtype=torch.long)
        if past > 1 and batch > 1:
            mask[1, : past // 2] = 0  # a prompt that was padded on the left
        return ids, mask, *(torch.randn(batch, s[1], past, s[3], generator=generator) for s in shapes)

    slots = [f"{layer}.{part}" for layer in range(len(layers)) for part in ("key", "value")]
    inputs = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "total"}}
    inputs |= {f"past.{slot}": {0: "batch", 2: "past"} for slot in slots}
    outputs = {"logits": {0: "batch", 1: "sequence"}} | {f"present.{slot}": {0: "batch", 2: "total"} for slot in slots}
    sizes = [dict(batch=1, sequence=5, past=0), dict(batch=2, sequence=1, past=9), dict(batch=3, sequence=4, past=20)]
    return called(net, step, inputs, outputs, draw, sizes, dict(batch=2, sequence=3, past=5))


def without_cache(kind, base=LLAMA_LIKE, **more):
    """A causal network that keeps more than keys and values: on whole prompts."""

    def logits(net, ids, mask):
        return net(input_ids=ids, attention_mask=mask, use_cache=False).logits

    return encoder(kind, base, logits, causal, **more)


T5_LIKE = dict(
    vocab_size=VOCAB,
    d_model=HIDDEN,
    d_kv=HIDDEN // HEADS,
    d_ff=INNER,
    num_layers=LAYERS,
    num_heads=HEADS,
    decoder_start_token_id=0,
)
BART_LIKE = dict(
    vocab_size=VOCAB,
    d_model=HIDDEN,
    encoder_layers=LAYERS,
    decoder_layers=LAYERS,
    encoder_attention_heads=HEADS,
    decoder_attention_heads=HEADS,
    encoder_ffn_dim=INNER,
    decoder_ffn_dim=INNER,
    max_position_embeddings=80,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
)


def both(net, ids, mask, targets):
    result = net(input_ids=ids, attention_mask=mask, decoder_input_ids=targets, use_cache=False)
    return result.logits, result.encoder_last_hidden_state


def translator(kind, base, **more):
    def draw(generator, batch, source, target):
        ids = torch.randint(3, VOCAB, (batch, source), generator=generator)
        return ids, padded(generator, batch, source), torch.randint(3, VOCAB, (batch, target), generator=generator)

    return called(
        transformers.AutoModelForSeq2SeqLM.from_config(config(kind, base, **more)),
        both,
        {
            "input_ids": {0: "batch", 1: "source"},
            "attention_mask": {0: "batch", 1: "source"},
            "decoder_input_ids": {0: "batch", 1: "target"},
        },
        {"logits": {0: "batch", 1: "target"}, "encoded": {0: "batch", 1: "source"}},
        draw,
        [dict(batch=1, source=7, target=4), dict(batch=2, source=12, target=9), dict(batch=3, source=30, target=17)],
        dict(batch=2, source=8, target=5),
    )


GPT_LIKE = dict(vocab_size=VOCAB, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=80)
DISTILBERT = dict(vocab_size=VOCAB, dim=HIDDEN, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER)
EXPERTS = dict(num_local_experts=4, num_experts=4, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
STATES = dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, state_size=8)
OPT = dict(
    vocab_size=VOCAB,
    hidden_size=HIDDEN,
    num_hidden_layers=LAYERS,
    num_attention_heads=HEADS,
    ffn_dim=INNER,
    word_embed_proj_dim=HIDDEN,
    max_position_embeddings=80,
)


def both_towers():
    """CLIP: images and texts, and how near they are."""
    text = dict(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=40,
        eos_token_id=2,
        bos_token_id=1,
        pad_token_id=0,
    )
    image = dict(
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        image_size=32,
        patch_size=8,
    )
    net = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=image, projection_dim=16))

    def draw(generator, texts, images, length):
        ids = torch.randint(3, VOCAB, (texts, length), generator=generator)
        ids[:, -1] = 2
        return ids, padded(generator, texts, length), torch.randn(images, 3, 32, 32, generator=generator)

    return called(
        net,
        lambda n, ids, mask, x: n(input_ids=ids, attention_mask=mask, pixel_values=x).logits_per_image,
        {"ids": {0: "texts", 1: "length"}, "mask": {0: "texts", 1: "length"}, "pixels": {0: "images"}},
        {"y": {0: "images", 1: "texts"}},
        draw,
        [dict(texts=2, images=1, length=5), dict(texts=3, images=4, length=9), dict(texts=1, images=2, length=20)],
        dict(texts=2, images=3, length=7),
    )


def series(kind, **more):
    """Forecasts of several channels."""
    base = dict(
        context_length=32,
        prediction_length=8,
        num_input_channels=3,
        patch_length=8,
        patch_stride=8,
        d_model=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=32,
    )
    name = {"patchtst": transformers.PatchTSTForPrediction, "patchtsmixer": transformers.PatchTSMixerForPrediction}[
        kind
    ]
    inputs = {"x": ("batch", 32, 3)}
    return net_of_floats(
        name(transformers.AutoConfig.for_model(kind, **(base | more))),
        inputs,
        {"y": {0: "batch"}},
        [dict(batch=b) for b in (1, 2, 5)],
        dict(batch=3),
        lambda net, x: net(past_values=x).prediction_outputs,
    )


NETS = {
    "bert": lambda: encoder("bert"),
    "gpt2": lambda: decoder("gpt2", GPT_LIKE),
    "llama": lambda: decoder("llama"),
    "t5": lambda: translator("t5", T5_LIKE),
    "roberta": lambda: encoder("roberta"),
    "distilbert": lambda: encoder("distilbert", DISTILBERT),
    "mixtral": lambda: decoder("mixtral", **EXPERTS),
    "albert": lambda: encoder("albert", embedding_size=16),
    "bart": lambda: translator("bart", BART_LIKE),
    "deberta": lambda: encoder(
        "deberta", relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=16
    ),
    "qwen2": lambda: decoder("qwen2"),
    "gemma": lambda: decoder("gemma", head_dim=8),
    "opt": lambda: decoder("opt", OPT),
    "bloom": lambda: decoder("bloom", dict(vocab_size=VOCAB, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS)),
    "falcon": lambda: decoder("falcon", new_decoder_architecture=True, num_kv_heads=KV_HEADS),
    "phi": lambda: decoder("phi"),
    "mpnet": lambda: encoder("mpnet"),
    "electra": lambda: encoder("electra", embedding_size=16),
    "mistral": lambda: decoder("mistral", sliding_window=8),
    "marian": lambda: translator("marian", BART_LIKE),
    "mamba": lambda: without_cache("mamba", STATES),
    "deberta_v2": lambda: encoder(
        "deberta-v2",
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=16,
        share_att_key=True,
        norm_rel_ebd="layer_norm",
    ),
    "qwen3": lambda: decoder("qwen3", head_dim=8),
    "qwen2_moe": lambda: decoder("qwen2_moe", shared_expert_intermediate_size=32, **EXPERTS),
    "gemma2": lambda: decoder("gemma2", head_dim=8, sliding_window=8, query_pre_attn_scalar=8),
    "gemma3": lambda: decoder("gemma3_text", head_dim=8, sliding_window=8, query_pre_attn_scalar=8),
    "gpt_neox": lambda: decoder("gpt_neox"),
    "gptj": lambda: decoder("gptj", GPT_LIKE | dict(rotary_dim=4)),
    "gpt_neo": lambda: decoder(
        "gpt_neo",
        dict(
            vocab_size=VOCAB,
            hidden_size=HIDDEN,
            num_layers=2,
            num_heads=HEADS,
            attention_types=[[["global", "local"], 1]],
            window_size=8,
            max_position_embeddings=80,
        ),
    ),
    "gpt_oss": lambda: decoder("gpt_oss", head_dim=8, sliding_window=8, **EXPERTS),
    "olmoe": lambda: decoder("olmoe", **EXPERTS),
    "olmo2": lambda: decoder("olmo2"),
    "cohere": lambda: decoder("cohere"),
    "stablelm": lambda: decoder("stablelm"),
    "starcoder2": lambda: decoder("starcoder2"),
    "gpt_bigcode": lambda: decoder("gpt_bigcode", GPT_LIKE),
    "mpt": lambda: decoder(
        "mpt", dict(vocab_size=VOCAB, d_model=HIDDEN, n_layers=LAYERS, n_heads=HEADS, max_seq_len=80)
    ),
    "phi3": lambda: decoder("phi3"),
    "granite": lambda: decoder("granite"),
    "deepseek_v3": lambda: decoder(
        "deepseek_v3",
        num_key_value_heads=HEADS,
        first_k_dense_replace=1,
        n_group=2,
        topk_group=1,
        q_lora_rank=16,
        kv_lora_rank=8,
        qk_rope_head_dim=4,
        v_head_dim=8,
        qk_nope_head_dim=8,
        n_shared_experts=1,
        **EXPERTS,
    ),
    "mamba2": lambda: without_cache("mamba2", STATES | dict(num_heads=8, head_dim=8, n_groups=2, chunk_size=8)),
    "falcon_mamba": lambda: without_cache("falcon_mamba", STATES),
    "rwkv": lambda: without_cache(
        "rwkv",
        dict(
            vocab_size=VOCAB,
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            attention_hidden_size=HIDDEN,
            intermediate_size=INNER,
        ),
    ),
    "jamba": lambda: without_cache(
        "jamba",
        num_experts=2,
        num_experts_per_tok=1,
        mamba_d_state=8,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
    ),
    "xlm_roberta": lambda: encoder("xlm-roberta"),
    "mobilebert": lambda: encoder("mobilebert", embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16),
    "squeezebert": lambda: encoder("squeezebert", embedding_size=HIDDEN),
    "roformer": lambda: encoder("roformer"),
    "convbert": lambda: encoder("convbert", embedding_size=16),
    "funnel": lambda: encoder(
        "funnel",
        make=lambda kind, base, more: transformers.FunnelModel(config(kind, base)),
        base=dict(
            vocab_size=VOCAB,
            d_model=HIDDEN,
            n_head=HEADS,
            d_head=8,
            d_inner=INNER,
            block_sizes=[1, 1],
            block_repeats=[1, 1],
            num_decoder_layers=1,
        ),
    ),
    "fnet": lambda: encoder(
        "fnet", call=lambda net, ids, mask: net(input_ids=ids).last_hidden_state + 0 * mask[..., None]
    ),
    "xlnet": lambda: encoder(
        "xlnet", dict(vocab_size=VOCAB, d_model=HIDDEN, n_layer=LAYERS, n_head=HEADS, d_inner=INNER)
    ),
    "modernbert": lambda: encoder(
        "modernbert", pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=8
    ),
    "longformer": lambda: encoder("longformer", attention_window=[8, 8]),
    "big_bird": lambda: encoder("big_bird", attention_type="original_full"),
    "nystromformer": lambda: encoder("nystromformer", num_landmarks=4, segment_means_seq_len=4),
    "esm": lambda: encoder("esm", position_embedding_type="rotary", pad_token_id=1, mask_token_id=2),
    "rembert": lambda: encoder("rembert", input_embedding_size=16, output_embedding_size=16),
    "mbart": lambda: translator("mbart", BART_LIKE),
    "pegasus": lambda: translator("pegasus", BART_LIKE),
    "m2m_100": lambda: translator("m2m_100", BART_LIKE),
    "blenderbot": lambda: translator("blenderbot", BART_LIKE),
    "mt5": lambda: translator("mt5", T5_LIKE | dict(feed_forward_proj="gated-gelu")),
    "longt5": lambda: translator("longt5", T5_LIKE | dict(local_radius=4)),
    "switch_transformers": lambda: translator(
        "switch_transformers",
        T5_LIKE | dict(num_experts=4, expert_capacity=32, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    ),
    "clip": both_towers,
    "patchtst": lambda: series("patchtst"),
    "patchtsmixer": lambda: series("patchtsmixer"),
    "xglm": lambda: decoder(
        "xglm", dict(vocab_size=VOCAB, d_model=HIDDEN, num_layers=LAYERS, attention_heads=HEADS, ffn_dim=INNER)
    ),
    "codegen": lambda: decoder("codegen", GPT_LIKE | dict(rotary_dim=4)),
    "nemotron": lambda: decoder("nemotron", head_dim=8),
    "glm": lambda: decoder("glm", head_dim=8),
    "exaone4": lambda: decoder("exaone4", sliding_window=8, sliding_window_pattern=2),
    "smollm3": lambda: decoder("smollm3"),
    "phimoe": lambda: decoder("phimoe", **EXPERTS),
    "qwen3_moe": lambda: decoder("qwen3_moe", head_dim=8, **EXPERTS),
    "ernie": lambda: encoder("ernie"),
    "camembert": lambda: encoder("camembert"),
    "layoutlm": lambda: encoder("layoutlm"),
    "eurobert": lambda: encoder("eurobert", LLAMA_LIKE),
    "lfm2": lambda: without_cache("lfm2", layer_types=["conv", "full_attention"]),
    "lfm2_moe": lambda: without_cache(
        "lfm2_moe", layer_types=["conv", "full_attention"], num_dense_layers=1, **EXPERTS
    ),
    "gemma4": lambda: decoder(
        "gemma4_text",
        head_dim=8,
        global_head_dim=8,
        sliding_window=8,
        vocab_size_per_layer_input=VOCAB,
        hidden_size_per_layer_input=8,
        num_kv_shared_layers=0,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "glm4": lambda: decoder("glm4", head_dim=8),
    "glm4_moe": lambda: decoder(
        "glm4_moe", head_dim=8, first_k_dense_replace=1, n_group=2, topk_group=1, n_shared_experts=1, **EXPERTS
    ),
    "ernie4_5": lambda: decoder("ernie4_5", head_dim=8),
    "hunyuan": lambda: decoder("hunyuan_v1_dense", head_dim=8),
    "cohere2": lambda: decoder("cohere2", sliding_window=8),
    "granitemoe": lambda: decoder("granitemoe", **EXPERTS),
    "flex_olmo": lambda: decoder("flex_olmo", **EXPERTS),
    "helium": lambda: decoder("helium", head_dim=8),
    "diffllama": lambda: decoder("diffllama", head_dim=8),
    "bitnet": lambda: decoder("bitnet"),
    "apertus": lambda: decoder("apertus"),
    "minimax": lambda: without_cache(
        "minimax", head_dim=8, block_size=8, layer_types=["linear_attention", "full_attention"], **EXPERTS
    ),
    "qwen3_next": lambda: without_cache(
        "qwen3_next",
        head_dim=8,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        shared_expert_intermediate_size=16,
        **EXPERTS,
    ),
    "bamba": lambda: without_cache(
        "bamba",
        attn_layer_indices=[1],
        mamba_d_state=8,
        mamba_n_heads=8,
        mamba_d_head=8,
        mamba_n_groups=1,
        mamba_chunk_size=8,
    ),
    "recurrent_gemma": lambda: without_cache(
        "recurrent_gemma", head_dim=8, lru_width=32, attention_window_size=8, block_types=["recurrent", "attention"]
    ),
    "biogpt": lambda: decoder("biogpt"),
    "ctrl": lambda: decoder(
        "ctrl", dict(vocab_size=VOCAB, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, dff=INNER, n_positions=80)
    ),
    "megatron_bert": lambda: encoder("megatron-bert"),
    "roc_bert": lambda: encoder("roc_bert", enable_pronunciation=False, enable_shape=False),
    "prophetnet": lambda: translator(
        "prophetnet",
        dict(
            vocab_size=VOCAB,
            hidden_size=HIDDEN,
            encoder_ffn_dim=INNER,
            decoder_ffn_dim=INNER,
            num_encoder_layers=LAYERS,
            num_decoder_layers=LAYERS,
            num_encoder_attention_heads=HEADS,
            num_decoder_attention_heads=HEADS,
            max_position_embeddings=80,
        ),
    ),
}
