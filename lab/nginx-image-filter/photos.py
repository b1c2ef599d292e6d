"""photos.py FOLDER: twelve photos as a camera makes them, of six megapixels."""
import os
import sys

from PIL import Image

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
noise = Image.effect_noise((750, 500), 60).resize((3000, 2000), Image.BICUBIC)
photo = Image.merge("RGB", (noise, noise.transpose(Image.FLIP_LEFT_RIGHT), noise.transpose(Image.FLIP_TOP_BOTTOM)))
photo.save(f"{folder}/0.jpg", quality=88)
with open(f"{folder}/0.jpg", "rb") as f:
    data = f.read()
for n in range(1, 12):
    with open(f"{folder}/{n}.jpg", "wb") as f:
        f.write(data)
