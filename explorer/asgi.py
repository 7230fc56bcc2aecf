"""The ASGI application: Django for HTTP, with a limit on what may be uploaded, and Channels for sockets."""

import os

from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

from explorer.middleware import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "explorer.settings")
django_application = get_asgi_application()

application = ProtocolTypeRouter(
    {"http": BodyLimit(django_application, maximum_bytes=settings.MAX_UPLOAD_BYTES)},
)
