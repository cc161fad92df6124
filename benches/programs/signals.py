"""Signals, images and number loops: filters, fractals, transforms, checksums.

In: arrays of samples or pixels. Out: new arrays or numbers:

    crc16(np.frombuffer(b"123456789", np.uint8))  # 0x6f91
"""

from __future__ import annotations

import numpy as np


def deriche(alpha, image):
    w, h = image.shape
    k = (1.0 - np.exp(-alpha)) * (1.0 - np.exp(-alpha))
    k /= 1.0 + alpha * np.exp(-alpha) * 2.0 - np.exp(2.0 * alpha)
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    y1 = np.empty_like(image)
    y2 = np.empty_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, h):
        y1[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * image[:, -1]
    for j in range(h - 3, -1, -1):
        y2[:, j] = (
            a3 * image[:, j + 1] + a4 * image[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
        )
    out = y1 + y2
    y1[0, :] = a1 * out[0, :]
    y1[1, :] = a1 * out[1, :] + a2 * out[0, :] + b1 * y1[0, :]
    for i in range(2, w):
        y1[i, :] = a1 * out[i, :] + a2 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0.0
    y2[-2, :] = a3 * out[-1, :]
    for i in range(w - 3, -1, -1):
        y2[i, :] = a3 * out[i + 1, :] + a4 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return y1 + y2


def mandelbrot_masks(xs, ys, rounds, horizon):
    """Every point of the grid at every step, the escaped ones masked."""
    C = xs + ys[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for n in range(rounds):
        inside = np.abs(Z) < horizon
        N[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    last = rounds - 1
    N[last == N] = 0
    return Z, N


def mandelbrot_points(xs, ys, rounds):
    """Each point on its own, until it escapes."""
    counts = np.zeros((len(ys), len(xs)), dtype=np.int32)
    for i in range(len(ys)):
        for j in range(len(xs)):
            x = 0.0
            y = 0.0
            n = 0
            while n < rounds and x * x + y * y < 4.0:
                x, y = x * x - y * y + xs[j], 2.0 * x * y + ys[i]
                n += 1
            counts[i, j] = n
    return counts


def conv2d(images, weights):
    k = weights.shape[0]
    n, h, w, _ = images.shape
    out_h = h - k + 1
    out_w = w - k + 1
    out = np.empty((n, out_h, out_w, weights.shape[3]), dtype=np.float32)
    for i in range(out_h):
        for j in range(out_w):
            patch = images[:, i : i + k, j : j + k, :, None]
            out[:, i, j, :] = np.sum(patch * weights[None, :, :, :, :], axis=(1, 2, 3))
    return out


def crc16(data):
    crc = 0xFFFF
    for b in data:
        current = int(b)
        for _ in range(8):
            if (crc ^ current) & 1:
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            current >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8) | ((crc >> 8) & 0xFF)


def stockham_fft(x, K):
    """The transform of 2**K samples, without bit reversal."""
    N = 2**K
    y = x.reshape(1, N).copy()
    for _ in range(K):
        rows, columns = y.shape
        half = columns // 2
        twiddle = np.exp(-1j * np.pi * np.arange(rows) / rows)[:, None]
        even = y[:, :half]
        odd = twiddle * y[:, half:]
        y = np.concatenate((even + odd, even - odd), axis=0)
    return y.reshape(N)


def histogram_equalisation(image):
    counts = np.zeros(256, dtype=np.int64)
    h, w = image.shape
    for i in range(h):
        for j in range(w):
            counts[image[i, j]] += 1
    cdf = np.cumsum(counts)
    low = cdf[0]
    for k in range(256):
        if cdf[k] > 0:
            low = cdf[k]
            break
    table = np.round((cdf - low) * 255.0 / (h * w - low))
    return table[image]


def iir_filter(b, a, x):
    """Direct form II transposed, second order, one sample at a time."""
    y = np.empty_like(x)
    z1 = 0.0
    z2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + z1
        z1 = b[1] * x[n] - a[1] * y[n] + z2
        z2 = b[2] * x[n] - a[2] * y[n]
    return y


def kalman_filter(observations, F, H, Q, R):
    """A linear state followed through noisy observations: all filtered states."""
    n = F.shape[0]
    x = np.zeros(n)
    P = np.eye(n)
    states = np.zeros((len(observations), n))
    for t in range(len(observations)):
        x = F @ x
        P = F @ P @ F.T + Q
        s = H @ P @ H + R
        gain = P @ H / s
        x = x + gain * (observations[t] - H @ x)
        P = P - np.outer(gain, H @ P)
        states[t] = x
    return states


def run_lengths(flags):
    """How many runs of True there are, the longest, and their mean length."""
    runs = 0
    longest = 0
    current = 0
    total = 0
    for flag in flags:
        if flag:
            if current == 0:
                runs += 1
            current += 1
            total += 1
            longest = max(longest, current)
        else:
            current = 0
    return runs, longest, total / max(runs, 1)
