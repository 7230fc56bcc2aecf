"""The ASGI application: Django for HTTP, with a limit on what may be uploaded, and Channels for sockets."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "explorer.settings")
django_application = get_asgi_application()  # sets Django up; what is imported below needs that

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path  # noqa: E402

from explorer.consumers import RunConsumer, SweepConsumer  # noqa: E402
from explorer.middleware import BodyLimit  # noqa: E402

# The stubs of `path` know views only; Channels gives it applications.
sockets = URLRouter(
    [
        path("ws/runs/<uuid:pk>/", RunConsumer.as_asgi()),  # type: ignore[arg-type, list-item]
        path("ws/sweeps/<uuid:pk>/", SweepConsumer.as_asgi()),  # type: ignore[arg-type, list-item]
    ]
)
application = ProtocolTypeRouter(
    {
        "http": BodyLimit(django_application, maximum_bytes=settings.MAX_UPLOAD_BYTES),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(sockets)),
    }
)
