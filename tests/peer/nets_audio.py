# SPDX-License-Identifier: Apache-2.0
"""Networks of sound, by transformers and by hand: small configurations, random weights."""

import torch
import transformers
from torch import nn
from torch.nn import functional

from nets import HEADS, HIDDEN, INNER, LAYERS, called, net_of_floats
from nets_text import BART_LIKE

WAV2VEC = dict(
    hidden_size=HIDDEN,
    num_hidden_layers=LAYERS,
    num_attention_heads=HEADS,
    intermediate_size=INNER,
    conv_dim=(16, 16, 16),
    conv_stride=(5, 2, 2),
    conv_kernel=(10, 3, 3),
    num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=4,
    vocab_size=30,
)


def by_length(net, call=None, at=(800, 1000, 1603), channels=(), outputs=("y",)):
    """Waves of any number and length."""
    sizes = [dict(batch=i + 1, length=n) for i, n in enumerate(at)]
    inputs = {"wave": ("batch", *channels, "length")}
    return net_of_floats(net, inputs, {o: {0: "batch"} for o in outputs}, sizes, dict(batch=2, length=at[1]), call)


def wave(kind, make=transformers.AutoModel, call=lambda net, x: net(x).last_hidden_state, base=WAV2VEC, **more):
    return by_length(make.from_config(transformers.AutoConfig.for_model(kind, **(base | more))), call)


def whisper_encoder():
    net = transformers.WhisperModel(
        transformers.WhisperConfig(**BART_LIKE, num_mel_bins=8, max_source_positions=20, max_target_positions=30)
    ).encoder
    sizes = [dict(batch=b) for b in (1, 2, 3)]
    inputs = {"features": ("batch", 8, 40)}
    return net_of_floats(net, inputs, {"y": {0: "batch"}}, sizes, dict(batch=2), lambda n, x: n(x).last_hidden_state)


def whisper():
    net = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(**BART_LIKE, num_mel_bins=8, max_source_positions=20, max_target_positions=30)
    )

    def draw(generator, batch, target):
        return (
            torch.randn(batch, 8, 40, generator=generator),
            torch.randint(3, 100, (batch, target), generator=generator),
        )

    return called(
        net,
        lambda n, x, ids: n(input_features=x, decoder_input_ids=ids, use_cache=False).logits,
        {"features": {0: "batch"}, "tokens": {0: "batch", 1: "target"}},
        {"logits": {0: "batch", 1: "target"}},
        draw,
        [dict(batch=1, target=4), dict(batch=2, target=9), dict(batch=3, target=17)],
        dict(batch=2, target=5),
    )


class Separable(nn.Module):
    """A block of Conv-TasNet: bottleneck, depthwise convolution over time, residual and skip."""

    def __init__(self, width, inner, dilation):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(width, inner, 1),
            nn.PReLU(),
            nn.GroupNorm(1, inner, eps=1e-8),
            nn.Conv1d(inner, inner, 3, padding=dilation, dilation=dilation, groups=inner),
            nn.PReLU(),
            nn.GroupNorm(1, inner, eps=1e-8),
        )
        self.residual = nn.Conv1d(inner, width, 1)
        self.skip = nn.Conv1d(inner, width, 1)

    def forward(self, x):
        y = self.net(x)
        return x + self.residual(y), self.skip(y)


class ConvTasNet(nn.Module):
    def __init__(self, sources=2, filters=16, width=12, inner=24):
        super().__init__()
        self.encoder = nn.Conv1d(1, filters, 16, stride=8, bias=False)
        self.norm = nn.GroupNorm(1, filters)
        self.bottleneck = nn.Conv1d(filters, width, 1)
        self.blocks = nn.ModuleList(Separable(width, inner, 2**i) for i in range(4))
        self.mask = nn.Conv1d(width, filters * sources, 1)
        self.decoder = nn.ConvTranspose1d(filters, 1, 16, stride=8, bias=False)
        self.sources, self.filters = sources, filters

    def forward(self, wave):
        length = wave.shape[-1]
        rest = (8 - (length - 16) % 8) % 8
        features = self.encoder(functional.pad(wave, (0, rest))[:, None])
        x, total = self.bottleneck(self.norm(features)), 0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        masks = torch.sigmoid(self.mask(total)).view(wave.shape[0], self.sources, self.filters, -1)
        masked = (masks * features[:, None]).flatten(0, 1)
        return self.decoder(masked).view(wave.shape[0], self.sources, -1)[..., :length]


class WaveNet(nn.Module):
    """Causal dilated convolutions with gates."""

    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.dilated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**i) for i in range(4))
        self.mix = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(4))
        self.last = nn.Conv1d(width, 8, 1)

    def forward(self, wave):
        x, total = self.first(wave[:, None]), 0
        for i, (dilated, mix) in enumerate(zip(self.dilated, self.mix, strict=True)):
            a, b = dilated(functional.pad(x, (2**i, 0))).chunk(2, 1)
            residual, skip = mix(torch.tanh(a) * torch.sigmoid(b)).split(16, 1)
            x, total = x + residual, total + skip
        return self.last(torch.relu(total))


class KeywordSpotter(nn.Module):
    """A log-mel spectrum by convolution, a recurrent net and attention over time."""

    def __init__(self):
        super().__init__()
        window = torch.hann_window(64)
        angle = 2 * torch.pi * torch.arange(33)[:, None] * torch.arange(64)[None] / 64
        self.register_buffer("basis", torch.cat([angle.cos(), angle.sin()])[:, None] * window)
        self.mel = nn.Linear(33, 12)
        self.gru = nn.GRU(12, 16, batch_first=True, bidirectional=True)
        self.score = nn.Linear(32, 1)
        self.last = nn.Linear(32, 5)

    def forward(self, wave):
        real, imag = functional.conv1d(wave[:, None], self.basis, stride=32).chunk(2, 1)
        mel = self.mel((real.square() + imag.square()).transpose(1, 2))
        x = torch.log(mel.clamp(min=1e-5) + 1.0)
        y, _ = self.gru(x)
        weight = torch.softmax(self.score(y), 1)
        return self.last((weight * y).sum(1))


class MelVocoder(nn.Module):
    """HiFi-GAN's generator: transposed convolutions and residual stacks of several kernels."""

    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Conv1d(8, width, 7, padding=3)
        self.up = nn.ModuleList(nn.ConvTranspose1d(width >> i, width >> (i + 1), 8, 4, padding=2) for i in range(2))
        self.stacks = nn.ModuleList(
            nn.ModuleList(
                nn.ModuleList(
                    nn.Conv1d(width >> (i + 1), width >> (i + 1), k, dilation=d, padding=d * (k - 1) // 2)
                    for d in (1, 3)
                )
                for k in (3, 7)
            )
            for i in range(2)
        )
        self.last = nn.Conv1d(width >> 2, 1, 7, padding=3)

    def forward(self, mel):
        x = self.first(mel)
        for up, stacks in zip(self.up, self.stacks, strict=True):
            x = up(functional.leaky_relu(x, 0.1))
            total = 0
            for stack in stacks:
                y = x
                for conv in stack:
                    y = y + conv(functional.leaky_relu(y, 0.1))
                total = total + y
            x = total / len(stacks)
        return torch.tanh(self.last(functional.leaky_relu(x)))


def ast():
    config = transformers.ASTConfig(
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        num_mel_bins=32,
        max_length=64,
        patch_size=16,
        frequency_stride=10,
        time_stride=10,
    )
    inputs = {"features": ("batch", 64, 32)}
    sizes = [dict(batch=b) for b in (1, 2, 3)]
    return net_of_floats(
        transformers.ASTForAudioClassification(config),
        inputs,
        {"y": {0: "batch"}},
        sizes,
        dict(batch=2),
        lambda n, x: n(x).logits,
    )


def encodec_model():
    return transformers.EncodecModel(
        transformers.EncodecConfig(
            num_filters=4,
            hidden_size=16,
            codebook_size=32,
            codebook_dim=16,
            upsampling_ratios=[4, 2],
            num_residual_layers=1,
            num_lstm_layers=1,
        )
    )


def hifigan():
    config = transformers.SpeechT5HifiGanConfig(
        model_in_dim=8,
        upsample_initial_channel=16,
        upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3, 5],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
    )
    sizes = [dict(batch=i + 1, length=n) for i, n in enumerate((5, 12, 31))]
    inputs = {"mel": ("batch", "length", 8)}
    return net_of_floats(
        transformers.SpeechT5HifiGan(config), inputs, {"y": {0: "batch"}}, sizes, dict(batch=2, length=9)
    )


def encodec(call):
    config = transformers.EncodecConfig(
        num_filters=4,
        hidden_size=16,
        codebook_size=32,
        codebook_dim=16,
        upsampling_ratios=[4, 2],
        num_residual_layers=1,
        num_lstm_layers=1,
        chunk_length_s=None,
        target_bandwidths=[12.0],
        sampling_rate=8000,
    )
    return by_length(transformers.EncodecModel(config), call, at=(160, 200, 320), channels=(1,))


NETS = {
    "wav2vec2": lambda: wave("wav2vec2"),
    "wav2vec2_ctc": lambda: wave(
        "wav2vec2",
        transformers.AutoModelForCTC,
        lambda n, x: n(x).logits,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        conv_bias=True,
    ),
    "whisper_encoder": whisper_encoder,
    "whisper": whisper,
    "conv_tasnet": lambda: by_length(ConvTasNet()),
    "hubert": lambda: wave("hubert"),
    "wavlm": lambda: wave("wavlm", num_buckets=20, max_bucket_distance=40),
    "unispeech": lambda: wave("unispeech"),
    "sew": lambda: wave("sew", squeeze_factor=2),
    "data2vec_audio": lambda: wave("data2vec-audio", conv_pos_kernel_size=5, num_conv_pos_embeddings=2),
    "wavenet": lambda: by_length(WaveNet(), at=(40, 64, 101)),
    "keyword_spotter": lambda: by_length(KeywordSpotter()),
    "vocoder": lambda: by_length(MelVocoder(), at=(5, 12, 31), channels=(8,)),
    "ast": ast,
    "hifigan": hifigan,
    "encodec_decoder": lambda: by_length(
        encodec_model().decoder,
        at=(5, 12, 31),
        channels=(16,),
    ),
    "encodec_encoder": lambda: by_length(
        encodec_model().encoder,
        at=(160, 200, 321),
        channels=(1,),
    ),
    "speech_to_text": lambda: wave_text(),
    "wav2vec2_conformer": lambda: wave("wav2vec2-conformer", position_embeddings_type="relative"),
    "univnet": lambda: univnet(),
}


def wave_text():
    net = transformers.Speech2TextForConditionalGeneration(
        transformers.Speech2TextConfig(
            **{k: v for k, v in BART_LIKE.items() if k != "max_position_embeddings"},
            input_feat_per_channel=8,
            conv_channels=16,
            num_conv_layers=2,
            max_source_positions=80,
            max_target_positions=40,
        )
    )

    def draw(generator, batch, source, target):
        return (
            torch.randn(batch, source, 8, generator=generator),
            torch.randint(3, 100, (batch, target), generator=generator),
        )

    return called(
        net,
        lambda n, x, ids: n(input_features=x, decoder_input_ids=ids, use_cache=False).logits,
        {"features": {0: "batch", 1: "source"}, "tokens": {0: "batch", 1: "target"}},
        {"logits": {0: "batch", 1: "target"}},
        draw,
        [dict(batch=1, source=20, target=4), dict(batch=2, source=33, target=9), dict(batch=3, source=64, target=17)],
        dict(batch=2, source=24, target=5),
    )


def univnet():
    net = transformers.UnivNetModel(
        transformers.UnivNetConfig(
            model_in_channels=8,
            model_hidden_channels=8,
            num_mel_bins=12,
            resblock_kernel_sizes=[3, 3],
            resblock_stride_sizes=[4, 4],
            resblock_dilation_sizes=[[1, 3], [1, 3]],
            kernel_predictor_hidden_channels=8,
        )
    )
    sizes = [dict(batch=i + 1, length=n) for i, n in enumerate((5, 12, 31))]
    inputs = {"mel": ("batch", "length", 12), "noise": ("batch", "length", 8)}
    return net_of_floats(
        net, inputs, {"y": {0: "batch"}}, sizes, dict(batch=2, length=9), lambda n, mel, noise: n(mel, noise).waveforms
    )
