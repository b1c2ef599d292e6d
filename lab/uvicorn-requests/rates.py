"""Prices in another currency, by today's rates of the bank."""
import requests
from fastapi import FastAPI

app = FastAPI()


def rate():
    return requests.get("http://127.0.0.1:9000/rates/usd").json()["price"] / 1000


@app.get("/price")
{{.handler}} price():
    return {"usd": round(49.90 * rate(), 2)}
