"""Total-variation denoising of a photograph by gradient descent.

In: the photograph that Matplotlib ships, with noise added. Out: a `Comparison`, and before/after
pictures. `loss` is plain NumPy; npjit.grad differentiates it. `gradient_by_hand` is what one would
otherwise derive on paper: it is the check, and the NumPy side of the race.

    image = descend(image, noisy)
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

import npjit
from npjit.cli.compare import Comparison, Progress, relative_error, slope_error

Image: TypeAlias = np.ndarray

STEPS = 120
RATE = 0.05
WEIGHT = 0.12
SMOOTH = 1e-3


def loss(image, noisy):
    """Distance from the noisy picture, plus the length of all steps between neighbours."""
    right = image[:-1, 1:] - image[:-1, :-1]
    down = image[1:, :-1] - image[:-1, :-1]
    variation = np.sum(np.sqrt(right**2 + down**2 + SMOOTH))
    return 0.5 * np.sum((image - noisy) ** 2) + WEIGHT * variation


def gradient_by_hand(image: Image, noisy: Image) -> Image:
    right = image[:-1, 1:] - image[:-1, :-1]
    down = image[1:, :-1] - image[:-1, :-1]
    length = np.sqrt(right**2 + down**2 + SMOOTH)
    right *= WEIGHT / length
    down *= WEIGHT / length
    gradient = image - noisy
    gradient[:-1, 1:] += right
    gradient[1:, :-1] += down
    gradient[:-1, :-1] -= right + down
    return gradient


gradient = npjit.grad(loss)


@npjit.jit
def descend(image, noisy):
    return image - RATE * gradient(image, noisy)


def descend_by_hand(image: Image, noisy: Image) -> Image:
    return image - RATE * gradient_by_hand(image, noisy)


def repeat(step: Callable[[Image, Image], Image], noisy: Image, progress: Progress) -> Image:
    """The picture after as many steps as `progress` counts."""
    image = noisy
    with progress:
        for count in range(progress.steps):
            image = step(image, noisy)
            progress(count + 1)
    return image


def read_photo() -> Image:
    """Height, width, colour; values from 0 to 1."""
    import matplotlib
    from PIL import Image as Picture

    path = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    with Picture.open(path) as picture:
        return np.asarray(picture, dtype=np.float64) / 255.0


def write_picture(image: Image, path: Path) -> None:
    from PIL import Image as Picture

    Picture.fromarray((np.clip(image, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)).save(path)


def noise_level(image: Image, photo: Image) -> float:
    """Peak signal-to-noise ratio in decibels: higher is nearer to the photograph."""
    return float(-10.0 * np.log10(np.mean((np.clip(image, 0.0, 1.0) - photo) ** 2)))


def denoise(folder: Path, steps: int = STEPS) -> Comparison:
    """Denoises with npjit and with NumPy, checks that they agree, writes pictures."""
    photo = read_photo()
    noisy = photo + 0.1 * np.random.default_rng(0).standard_normal(photo.shape)
    slope = slope_error(lambda image: loss(image, noisy), noisy, gradient(noisy, noisy))

    start = time.perf_counter()
    descend(noisy, noisy)
    first = time.perf_counter() - start

    compiled, by_hand = Progress("npjit", steps), Progress("NumPy", steps)
    image = repeat(descend, noisy, compiled)
    expected = repeat(descend_by_hand, noisy, by_hand)

    write_picture(noisy, folder / "before.png")
    write_picture(image, folder / "after.png")
    before, after = noise_level(noisy, photo), noise_level(image, photo)
    return Comparison(
        task=f"photograph, {steps} steps of descent",
        numpy_seconds=by_hand.seconds,
        npjit_seconds=compiled.seconds,
        first_call=first,
        checks={
            "picture against the gradient derived by hand": (relative_error(image, expected), 1e-9),
            "gradient against finite differences": (slope, 1e-5),
        },
        notes=[
            f"signal to noise {before:.1f} dB before, {after:.1f} dB after",
            f"pictures: {folder / 'before.png'}, {folder / 'after.png'}",
        ],
        calls=descend.cache_info(),
    )
