"""The shop's front page: who is it, what is in the cart, which prices, which offers. All of it is in Redis."""
import redis
from flask import Flask

app = Flask(__name__)
store = redis.Redis("10.77.0.1", max_connections=200)


@app.get("/")
def front():
    session = store.get("session:4711")
    customer = store.get("customer:17")
    cart = store.lrange("cart:17", 0, -1)
    flags = [store.get(f"flag:{name}") for name in ("search", "checkout", "chat", "banner")]
    prices = [store.get(f"price:{article}") for article in range(12)]
    return {"session": bool(session), "customer": bool(customer), "cart": len(cart), "flags": len(flags), "prices": len(prices)}
