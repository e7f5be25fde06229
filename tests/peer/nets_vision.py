# SPDX-License-Identifier: Apache-2.0
"""Networks of images by torchvision and transformers: shallow and narrow where one may ask for it, random weights."""

import torch
import torchvision
import transformers
from torchvision import models
from torchvision.models import convnext, densenet, detection, efficientnet, resnet, segmentation

from nets import HEADS, HIDDEN, INNER, LAYERS, fixed_image_net, image_net, net_of_floats

VIT_LIKE = dict(
    hidden_size=HIDDEN,
    num_hidden_layers=LAYERS,
    num_attention_heads=HEADS,
    intermediate_size=INNER,
    image_size=32,
    patch_size=8,
    num_labels=10,
)


def first(net, x):
    result = net(x)
    return next(iter(result.values())) if isinstance(result, dict) else result


def classifier(make, size=None, **more):
    """Any size that is no multiple of the strides, where the network takes any."""
    net = make(num_classes=10, **more)
    return fixed_image_net(net, size) if size else image_net(net, at=((64, 64), (97, 70), (65, 130)))


def logits(net, x):
    return net(pixel_values=x).logits


def hidden(net, x):
    return net(pixel_values=x).last_hidden_state


def vision(kind, size=32, call=logits, make=transformers.AutoModelForImageClassification, base=VIT_LIKE, **more):
    net = make.from_config(transformers.AutoConfig.for_model(kind, **(base | more)))
    return fixed_image_net(net, size, call=call) if size else image_net(net, call=call)


class Class:
    """A class of networks that no AutoModel knows."""

    def __init__(self, kind):
        self.kind = kind

    def from_config(self, config):
        return self.kind(config)


def swin(make, window):
    return make(
        patch_size=[4, 4], embed_dim=12, depths=[2, 2], num_heads=[2, 2], window_size=[window] * 2, num_classes=10
    )


def small_vgg():
    features = models.vgg.make_layers([8, "M", 16, "M", 32, 32, "M"], batch_norm=True)
    net = models.VGG(features, num_classes=10)
    net.classifier = torch.nn.Sequential(torch.nn.Linear(32 * 49, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    return net


class AtHead(torch.nn.Module):
    """A detector from images to boxes and scores, before what is suppressed."""

    def __init__(self, net):
        super().__init__()
        self.backbone, self.head = net.backbone, net.head

    def forward(self, x):
        features = list(self.backbone(x).values())
        return tuple(self.head(features).values())


def detector(net, x):
    result = net([x[0]])[0]
    return result["boxes"], result["scores"], result["labels"]


def detection_net(net):
    return image_net(net, ("boxes", "scores", "labels"), detector, batches=(1, 1, 1))


def video(net, frames=4, size=32):
    inputs = {"clip": ("batch", 3, frames, size, size)}
    return net_of_floats(net, inputs, {"y": {0: "batch"}}, [dict(batch=b) for b in (1, 2, 3)], dict(batch=2))


def detr():
    """Queries that look at a feature map, by transformers; its backbone is a small ResNet."""
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], out_features=["stage4"]
    )
    config = transformers.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        d_model=HIDDEN,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        num_queries=7,
        num_labels=5,
    )

    def boxes(net, x):
        result = net(pixel_values=x)
        return result.logits, result.pred_boxes

    return image_net(transformers.DetrForObjectDetection(config), ("scores", "boxes"), boxes)


NETS = {
    "resnet18": lambda: classifier(models.resnet18),
    "mobilenet_v3": lambda: classifier(models.mobilenet_v3_small),
    "vit": lambda: vision("vit"),
    "squeezenet": lambda: classifier(models.squeezenet1_1),
    "efficientnet": lambda: classifier(models.efficientnet_b0),
    "convnext": lambda: classifier(
        convnext.ConvNeXt,
        block_setting=[convnext.CNBlockConfig(16, 32, 2), convnext.CNBlockConfig(32, None, 1)],
    ),
    "densenet": lambda: classifier(densenet.DenseNet, growth_rate=8, block_config=(2, 2, 2), num_init_features=16),
    "shufflenet": lambda: classifier(models.shufflenet_v2_x0_5),
    "regnet": lambda: classifier(models.regnet_y_400mf),
    "swin": lambda: image_net(swin(models.SwinTransformer, 4)),
    "fcn": lambda: image_net(
        segmentation.FCN(
            models._utils.IntermediateLayerGetter(resnet.resnet18(), {"layer4": "out"}),
            segmentation.fcn.FCNHead(512, 5),
        ),
        call=first,
    ),
    "deeplab": lambda: image_net(
        segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5),
        call=first,
        batches=(1, 2, 2),
    ),
    "torchvision_vit": lambda: classifier(
        models.VisionTransformer,
        size=32,
        image_size=32,
        patch_size=8,
        num_layers=2,
        num_heads=4,
        hidden_dim=32,
        mlp_dim=64,
    ),
    "googlenet": lambda: classifier(models.googlenet, aux_logits=False, init_weights=False),
    "inception": lambda: image_net(
        models.inception_v3(num_classes=10, aux_logits=False, init_weights=False), at=((80, 80), (97, 90), (85, 130))
    ),
    "mobilenet_v2": lambda: classifier(models.mobilenet_v2),
    "mnasnet": lambda: classifier(models.mnasnet0_5),
    "vgg": lambda: image_net(small_vgg()),
    "deit": lambda: vision("deit", make=Class(transformers.DeiTForImageClassification)),
    "lraspp": lambda: image_net(
        segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5), call=first
    ),
    "resnext": lambda: classifier(
        resnet.ResNet, block=resnet.Bottleneck, layers=[1, 1, 1, 1], groups=4, width_per_group=8
    ),
    "efficientnet_v2": lambda: classifier(
        efficientnet.EfficientNet,
        inverted_residual_setting=[
            efficientnet.FusedMBConvConfig(4, 3, 2, 16, 24, 1),
            efficientnet.MBConvConfig(4, 3, 2, 24, 32, 2),
        ],
        dropout=0.1,
    ),
    "swin_v2": lambda: image_net(
        torchvision.models.SwinTransformer(
            [4, 4],
            12,
            [2, 2],
            [2, 2],
            [4, 4],
            num_classes=10,
            block=models.swin_transformer.SwinTransformerBlockV2,
            downsample_layer=models.swin_transformer.PatchMergingV2,
        )
    ),
    "maxvit": lambda: fixed_image_net(
        models.MaxVit(
            input_size=(64, 64),
            stem_channels=8,
            partition_size=4,
            block_channels=[8, 16],
            block_layers=[1, 1],
            head_dim=4,
            stochastic_depth_prob=0.0,
            num_classes=10,
        ),
        64,
    ),
    "retinanet_head": lambda: image_net(
        AtHead(detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=3)),
        outputs=("scores", "boxes"),
        at=((64, 64), (128, 64), (64, 128)),
    ),
    "hf_swin": lambda: vision(
        "swin",
        base=dict(image_size=32, num_labels=10),
        embed_dim=12,
        depths=[2, 2],
        num_heads=[2, 2],
        window_size=4,
        patch_size=4,
    ),
    "hf_swinv2": lambda: vision(
        "swinv2",
        base=dict(image_size=32, num_labels=10),
        embed_dim=12,
        depths=[2, 2],
        num_heads=[2, 2],
        window_size=4,
        patch_size=4,
    ),
    "beit": lambda: vision("beit"),
    "dinov2": lambda: vision("dinov2"),
    "hf_convnext": lambda: vision("convnext", size=None, base={}, depths=[1, 2, 1, 1], hidden_sizes=[8, 16, 24, 32]),
    "convnextv2": lambda: vision("convnextv2", size=None, base={}, depths=[1, 2, 1, 1], hidden_sizes=[8, 16, 24, 32]),
    "segformer": lambda: vision(
        "segformer",
        size=None,
        base={},
        make=transformers.AutoModelForSemanticSegmentation,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 24, 32],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=32,
        num_labels=5,
    ),
    "poolformer": lambda: vision("poolformer", size=None, base={}, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32]),
    "mobilevit": lambda: vision(
        "mobilevit",
        size=64,
        base={},
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 24, 32, 32, 32],
        image_size=64,
    ),
    "mobilevitv2": lambda: vision("mobilevitv2", size=64, base={}, width_multiplier=0.25, image_size=64),
    "levit": lambda: vision(
        "levit",
        make=Class(transformers.LevitForImageClassification),
        size=64,
        base={},
        image_size=64,
        hidden_sizes=[32, 48, 64],
        num_attention_heads=[2, 3, 4],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
    ),
    "pvt_v2": lambda: vision(
        "pvt_v2",
        size=64,
        base={},
        image_size=64,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
    ),
    "cvt": lambda: vision("cvt", size=64, base={}, embed_dim=[8, 16, 32], num_heads=[1, 2, 4], depth=[1, 2, 3]),
    "focalnet": lambda: vision("focalnet", size=64, base={}, image_size=64, embed_dim=8, depths=[1, 1, 1, 1]),
    "hf_regnet": lambda: vision(
        "regnet",
        size=None,
        base={},
        embedding_size=8,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        groups_width=8,
    ),
    "hf_resnet": lambda: vision(
        "resnet", size=None, base={}, embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]
    ),
    "hiera": lambda: vision(
        "hiera",
        size=64,
        base={},
        image_size=[64, 64],
        embed_dim=16,
        depths=[1, 1, 1],
        num_heads=[1, 2, 4],
        num_query_pool=2,
        masked_unit_size=[4, 4],
        patch_stride=[4, 4],
        patch_size=[7, 7],
        patch_padding=[3, 3],
    ),
    "yolos": lambda: vision(
        "yolos",
        size=32,
        image_size=[32, 32],
        num_detection_tokens=5,
        patch_size=8,
        make=transformers.AutoModelForObjectDetection,
        call=lambda net, x: net(pixel_values=x).pred_boxes,
    ),
    "siglip_vision": lambda: vision("siglip_vision_model", make=transformers.AutoModel, call=hidden),
    "clip_vision": lambda: vision("clip_vision_model", make=transformers.AutoModel, call=hidden),
    "vit_any_size": lambda: vision("vit", size=None, call=lambda net, x: net(x, interpolate_pos_encoding=True).logits),
    "dinov2_any_size": lambda: vision("dinov2", size=None),
    "dpt": lambda: vision(
        "dpt",
        make=transformers.AutoModelForDepthEstimation,
        neck_hidden_sizes=[8, 16, 24, 32],
        fusion_hidden_size=16,
        backbone_out_indices=[0, 1, 2, 3],
        num_hidden_layers=4,
        is_hybrid=False,
        call=lambda net, x: net(pixel_values=x).predicted_depth,
    ),
    "glpn": lambda: vision(
        "glpn",
        size=64,
        base={},
        make=transformers.AutoModelForDepthEstimation,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 24, 32],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
        call=lambda net, x: net(pixel_values=x).predicted_depth,
    ),
    "swin2sr": lambda: vision(
        "swin2sr",
        base={},
        make=Class(transformers.Swin2SRForImageSuperResolution),
        image_size=32,
        embed_dim=12,
        depths=[2, 2],
        num_heads=[2, 2],
        window_size=4,
        call=lambda net, x: net(pixel_values=x).reconstruction,
    ),
    "ssdlite": lambda: detection_net(
        detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=3)
    ),
    "retinanet": lambda: detection_net(
        detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=128)
    ),
    "fasterrcnn": lambda: detection_net(
        detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=128
        )
    ),
    "fcos": lambda: detection_net(
        detection.fcos_resnet50_fpn(weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=128)
    ),
    "detr": detr,
    "mvit": lambda: video(models.video.mvit_v1_b(num_classes=10), frames=16, size=224),
    "r3d": lambda: video(models.video.r3d_18(num_classes=10)),
    "s3d": lambda: video(models.video.s3d(num_classes=10), frames=16, size=224),
}
