"""Networks of several layers, and weights that are rotated, after Clarkson et al. (2025)."""

from collections.abc import Iterator

from torch import Tensor, nn

from coterie.kmeans.transformer import Attention, Layer


class EncoderDecoder(nn.Module):
    """A stack of layers. ``layers`` yields the tokens after each of them."""

    def __init__(self, stack: list[Layer]):
        super().__init__()
        self.stack = nn.ModuleList(stack)

    def layers(self, x: Tensor, c: Tensor, point_weight: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        for layer in self.stack:
            x, c = layer(x, c, point_weight)
            yield x, c

    def forward(self, x: Tensor, c: Tensor, point_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        for tokens in self.layers(x, c, point_weight):
            x, c = tokens
        return x, c


def rotated(built: Layer, rotation: Tensor) -> Layer:
    """Remark 1: queries and keys rotated by one orthogonal matrix give the same scores, hence the same algorithm."""
    sockets = {}
    for name in ("encoder_self", "encoder_cross", "decoder_self", "decoder_cross"):
        socket: Attention = getattr(built, name)
        sockets[name] = Attention(
            socket.score, socket.normaliser, rotation @ socket.query, rotation @ socket.key, socket.value.data
        )
    return Layer(**sockets, norm=built.norm, ffn=built.ffn)
