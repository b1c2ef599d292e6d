"""Shows a cart, which is in the store at the cluster's address."""
import redis
from flask import Flask

app = Flask(__name__)
store = redis.Redis("10.77.0.50", max_connections=200, socket_timeout=0.5, socket_connect_timeout=0.5)


@app.get("/")
def cart():
    try:
        return {"articles": store.llen("cart:17")}
    except redis.RedisError:
        return {"error": "the cart is not available"}, 503
