"""Cuts a part out of a photograph, where the user has drawn a frame, and makes a small picture of it."""
import io
import random

from flask import Flask, Response
from PIL import Image

app = Flask(__name__)
PHOTO = Image.effect_mandelbrot((2400, 1800), (-2.2, -1.2, 0.8, 1.2), 60).convert("RGB")


@app.get("/thumbnail")
def thumbnail():
    x, y = random.randrange(800), random.randrange(600)
    small = PHOTO.crop((x, y, x + 1600, y + 1200)).resize((400, 300), Image.LANCZOS)
    out = io.BytesIO()
    small.save(out, "JPEG", quality=85)
    return Response(out.getvalue(), mimetype="image/jpeg")
