"""Routes of Starlette: its own patterns end with `$`."""
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


def name(request):
    id = request.path_params["id"]
    return PlainTextResponse(f"users\n{id}")


def called(text):
    return lambda request: PlainTextResponse(text)


routes = [Route(f"/{one}", called(one)) for one in ["login", "health", "free"]]
routes += [Route("/users/{id}", name), Route("/admin/{rest:path}", called("admin"))]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
