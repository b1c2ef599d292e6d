"""Signs members up, and has a welcome mail sent after the reply."""
import asyncio
import urllib.request

from fastapi import BackgroundTasks, FastAPI

app = FastAPI()


def send_mail():
    """Hands the mail to the mail service."""
    with urllib.request.urlopen("http://127.0.0.1:9000/send") as reply:
        reply.read()


async def send_mail_async():
    reader, writer = await asyncio.open_connection("127.0.0.1", 9000)
    writer.write(b"GET /send HTTP/1.0\r\n\r\n")
    await reader.read()
    writer.close()


@app.get("/signup")
def signup(tasks: BackgroundTasks):
    tasks.add_task({{.send}})
    return {"welcome": True}
