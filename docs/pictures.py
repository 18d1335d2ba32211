"""The README's pictures, made small from those that the gallery drew: ``make pictures``."""

from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
WIDTHS = {"compare": 1300, "zero_shot": 800, "flow_mixture": 800, "vae_mixture": 800, "soft_and_sphere": 800}


def main() -> None:
    for example, width in WIDTHS.items():
        drawn = Image.open(HERE / f"gallery/images/sphx_glr_{example}_001.png").convert("RGB")
        small = drawn.resize((width, round(drawn.height * width / drawn.width)), Image.Resampling.LANCZOS)
        path = HERE / f"images/{example.replace('_', '-')}.png"
        small.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
        print(path)


if __name__ == "__main__":
    main()
