"""Routes of Django: its own patterns, and a regular expression that ends with `$`."""
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path, re_path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="none", APPEND_SLASH=False)


def called(text):
    return lambda request, **rest: HttpResponse(text)


urlpatterns = [re_path(f"^{one}/?$", called(one)) for one in ["login", "health", "free"]]
urlpatterns += [
    path("users/<str:id>", lambda request, id: HttpResponse(f"users\n{id}")),
    path("admin/<path:rest>", called("admin")),
]


class Silent(WSGIRequestHandler):
    def log_message(self, *args):
        pass


make_server("127.0.0.1", int(sys.argv[1]), get_wsgi_application(), handler_class=Silent).serve_forever()
