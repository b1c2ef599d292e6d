"""Orders a document: puts the job into the queue "documents" and waits until a worker has made it."""
import uuid

import redis.asyncio
from fastapi import FastAPI

app = FastAPI()
queue = redis.asyncio.Redis()


@app.get("/document")
async def document():
    job = uuid.uuid4().hex
    await queue.rpush("documents", job)
    made = await queue.blpop("made:" + job, timeout=30)
    return {"job": job, "made": made is not None}
