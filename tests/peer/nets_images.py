# SPDX-License-Identifier: Apache-2.0
"""Networks of images written by hand in plain torch: heads of detectors, segmentation, generators."""

import torch
from torch import nn
from torch.nn import functional

from nets import fixed_image_net, image_net, net_of_floats, rows


class Unet(nn.Module):
    """Sizes that do not divide are padded where the halves meet again."""

    def __init__(self, bilinear):
        super().__init__()

        def double(a, b):
            return nn.Sequential(
                nn.Conv2d(a, b, 3, padding=1),
                nn.BatchNorm2d(b),
                nn.ReLU(),
                nn.Conv2d(b, b, 3, padding=1),
                nn.BatchNorm2d(b),
                nn.ReLU(),
            )

        self.down = nn.ModuleList([double(3, 8), double(8, 16), double(16, 16)])
        self.grow = nn.ModuleList(
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            if bilinear
            else nn.ConvTranspose2d(16, 16, 2, stride=2)
            for _ in range(2)
        )
        self.up = nn.ModuleList([double(32, 16), double(24, 8)])
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x if not kept else functional.max_pool2d(x, 2))
            kept.append(x)
        x = kept.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            skip, x = kept.pop(), grow(x)
            dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
            x = functional.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            x = block(torch.cat([skip, x], 1))
        return self.last(x)


class Fpn(nn.Module):
    """A pyramid whose levels are enlarged to the size of the next, and a head over all of them."""

    def __init__(self, width=8):
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(3 if i == 0 else width, width, 3, stride=2, padding=1) for i in range(4))
        self.lateral = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(4))
        self.scores, self.boxes = nn.Conv2d(width, 3 * 2, 3, padding=1), nn.Conv2d(width, 3 * 4, 3, padding=1)

    def forward(self, x):
        levels = []
        for stage in self.stages:
            x = torch.relu(stage(x))
            levels.append(x)
        merged = [self.lateral[3](levels[3])]
        for i in (2, 1, 0):
            merged.append(self.lateral[i](levels[i]) + functional.interpolate(merged[-1], size=levels[i].shape[-2:]))
        scores, boxes = [], []
        for level in merged:
            b, _, h, w = level.shape
            scores.append(self.scores(level).view(b, 3, 2, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, 2))
            boxes.append(self.boxes(level).view(b, 3, 4, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, 4))
        return torch.cat(scores, 1).sigmoid(), torch.cat(boxes, 1)


class YoloHead(nn.Module):
    """Anchors and a grid of places, decoded in the graph."""

    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=4, padding=1), nn.SiLU(), nn.Conv2d(8, 3 * (5 + classes), 3, stride=2, padding=1)
        )
        self.register_buffer("anchors", torch.tensor([[10.0, 13.0], [16.0, 30.0], [33.0, 23.0]]))
        self.outputs = 5 + classes

    def forward(self, x):
        y = self.body(x)
        b, _, h, w = y.shape
        y = y.view(b, 3, self.outputs, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((gx, gy), 2).view(1, 1, h, w, 2).float()
        xy = (y[..., 0:2] * 2 - 0.5 + grid) * 8
        wh = (y[..., 2:4] * 2) ** 2 * self.anchors.view(1, 3, 1, 1, 2)
        return torch.cat((xy, wh, y[..., 4:]), -1).view(b, -1, self.outputs)


class CenterHead(nn.Module):
    """Peaks of a heat map: a pool, top k, and rows gathered at them."""

    def __init__(self):
        super().__init__()
        self.heat, self.size = nn.Conv2d(3, 2, 3, padding=1, stride=2), nn.Conv2d(3, 2, 3, padding=1, stride=2)

    def forward(self, x):
        heat = self.heat(x).sigmoid()
        heat = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat).float()
        b, c, h, w = heat.shape
        scores, places = torch.topk(heat.view(b, -1), 5)
        classes = torch.div(places, h * w, rounding_mode="floor")
        places = places % (h * w)
        size = self.size(x).view(b, 2, -1).transpose(1, 2).gather(1, places[..., None].expand(-1, -1, 2))
        ys, xs = torch.div(places, w, rounding_mode="floor"), places % w
        return scores, classes, torch.cat([xs[..., None].float(), ys[..., None].float(), size], -1)


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.locate = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 6))
        self.body = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        theta = self.locate(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return self.body(functional.grid_sample(x, grid, align_corners=False))


class Attend(nn.Module):
    """Squeeze and excitation, then attention over space (CBAM)."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.mlp = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8))
        self.space = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        weight = torch.sigmoid(self.mlp(x.mean((2, 3))) + self.mlp(x.amax((2, 3))))
        x = x * weight[:, :, None, None]
        return x * torch.sigmoid(self.space(torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)))


class MlpMixer(nn.Module):
    def __init__(self, width=16, tokens=16):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, stride=8)
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_tokens = nn.Sequential(nn.Linear(tokens, 24), nn.GELU(), nn.Linear(24, tokens))
        self.over_width = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, width))
        self.last = nn.Linear(width, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(-1, -2)
        x = x + self.over_tokens(self.n1(x).transpose(-1, -2)).transpose(-1, -2)
        x = x + self.over_width(self.n2(x))
        return self.last(x.mean(1))


class WindowAttention(nn.Module):
    """Windows of any image: padded to a multiple, rolled, cut, and put back."""

    def __init__(self, width=8, window=4):
        super().__init__()
        self.first, self.qkv, self.out = nn.Conv2d(3, width, 1), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.window = window

    def forward(self, x):
        n = self.window
        x = self.first(x).permute(0, 2, 3, 1)
        b, h, w, c = x.shape
        x = functional.pad(x, (0, 0, 0, (n - w % n) % n, 0, (n - h % n) % n))
        ph, pw = x.shape[1], x.shape[2]
        x = torch.roll(x, (-(n // 2), -(n // 2)), (1, 2))
        cut = x.view(b, ph // n, n, pw // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
        q, k, v = self.qkv(cut).chunk(3, -1)
        y = self.out(torch.softmax(q @ k.transpose(-1, -2) * c**-0.5, -1) @ v)
        y = y.view(b, ph // n, pw // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, ph, pw, c)
        return torch.roll(y, (n // 2, n // 2), (1, 2))[:, :h, :w].permute(0, 3, 1, 2)


class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 9, stride=4)
        self.routes = nn.Parameter(torch.randn(1, 2, 3, 8, 4) * 0.3)

    def forward(self, x):
        def squash(v):
            n = v.square().sum(-1, keepdim=True)
            return n / (1 + n) * v / (n + 1e-8).sqrt()

        u = squash(self.first(x).view(x.size(0), 8, -1).transpose(-1, -2))
        votes = (u[:, None, :, None, :] @ self.routes[:, :, :1]).squeeze(3)
        logits = torch.zeros(votes.shape[:3])
        for _ in range(2):
            v = squash((torch.softmax(logits, 1)[..., None] * votes).sum(2))
            logits = logits + (votes * v[:, :, None]).sum(-1)
        return v.norm(dim=-1)


def super_resolution():
    return image_net(
        nn.Sequential(nn.Conv2d(3, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 27, 3, padding=1), nn.PixelShuffle(3)),
        at=((8, 8), (9, 7), (16, 5)),
    )


def generator():
    return rows(
        nn.Sequential(
            nn.Unflatten(1, (8, 1, 1)),
            nn.ConvTranspose2d(8, 16, 4),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 8, 4, 2, 1),
            nn.InstanceNorm2d(8, affine=True),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )
    )


def style_transfer():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(
                nn.ReflectionPad2d(1), nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ReLU()
            )

        def forward(self, x):
            return x + self.net(x)

    return image_net(
        nn.Sequential(
            nn.ReflectionPad2d(4),
            nn.Conv2d(3, 8, 9),
            nn.InstanceNorm2d(8, affine=True),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, 2, 1),
            Residual(),
            nn.Upsample(scale_factor=2),
            nn.ReplicationPad2d(1),
            nn.Conv2d(8, 3, 3),
        ),
        at=((16, 16), (24, 18), (20, 30)),
    )


def two_frames():
    """A video network by hand: convolutions over time and space."""
    net = nn.Sequential(
        nn.Conv3d(3, 8, 3, padding=1),
        nn.BatchNorm3d(8),
        nn.ReLU(),
        nn.MaxPool3d((1, 2, 2)),
        nn.Conv3d(8, 8, (3, 1, 1), padding=(1, 0, 0)),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    inputs = {"clip": ("batch", 3, "frames", 16, "width")}
    return net_of_floats(
        net,
        inputs,
        {"y": {0: "batch"}},
        [dict(batch=1, frames=4, width=16), dict(batch=2, frames=7, width=10), dict(batch=3, frames=5, width=22)],
        dict(batch=2, frames=6, width=12),
    )


NETS = {
    "unet": lambda: image_net(Unet(False), at=((32, 32), (37, 30), (24, 51))),
    "unet_bilinear": lambda: image_net(Unet(True), at=((32, 32), (37, 30), (24, 51))),
    "fpn": lambda: image_net(Fpn(), ("scores", "boxes"), at=((64, 64), (97, 70), (65, 130))),
    "yolo_head": lambda: image_net(YoloHead(), at=((64, 64), (96, 72), (40, 120))),
    "center_head": lambda: image_net(CenterHead(), ("scores", "classes", "boxes"), at=((16, 16), (24, 18), (20, 30))),
    "spatial_transformer": lambda: image_net(SpatialTransformer(), at=((16, 16), (24, 16), (20, 32))),
    "cbam": lambda: image_net(Attend(), at=((8, 8), (9, 7), (16, 5))),
    "mixer": lambda: fixed_image_net(MlpMixer(), 32),
    "window_attention": lambda: image_net(WindowAttention(), at=((8, 8), (9, 7), (16, 5))),
    "capsules": lambda: fixed_image_net(Capsules(), 32),
    "super_resolution": super_resolution,
    "generator": generator,
    "style_transfer": style_transfer,
    "conv3d": two_frames,
}
