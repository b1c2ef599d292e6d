"""The orders of a day."""
import json
from typing import List

from fastapi import FastAPI, Response
from pydantic import BaseModel


class Address(BaseModel):
    name: str
    street: str
    city: str
    zip: str


class Line(BaseModel):
    article: int
    name: str
    count: int
    price: float


class Order(BaseModel):
    id: int
    customer: int
    status: str
    total: float
    address: Address
    lines: List[Line]


ORDERS = [
    {
        "id": n,
        "customer": n % 70,
        "status": "paid",
        "total": n * 1.5,
        "address": {"name": f"Customer {n % 70}", "street": "High Street 1", "city": "Town", "zip": "12345"},
        "lines": [{"article": n + k, "name": f"Article {n + k}", "count": k, "price": 9.5} for k in range(3)],
    }
    for n in range(800)
]
TEXT = json.dumps(ORDERS)
app = FastAPI()


def read_orders():
    """What the database says: one column of JSON."""
    return TEXT


if "{{.how}}" == "model":

    @app.get("/orders", response_model=List[Order])
    async def orders():
        return json.loads(read_orders())

else:

    @app.get("/orders")
    async def orders():
        return Response(read_orders(), media_type="application/json")
