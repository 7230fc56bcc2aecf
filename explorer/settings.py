"""Settings, all of them from the environment; with none set, Trimtab runs alone on SQLite in `var/`.

`DATABASE_URL` (PostgreSQL) and `REDIS_URL` (broker, channel layer, cache) turn the same code into the real
stack. A value that cannot be used is refused at start with its name, what was got, and what is allowed.
"""

import importlib.util
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def env_str(name: str, default: str = "") -> str:
    """The variable, or the default where it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def env_list(name: str, default: str = "") -> list[str]:
    """Items between commas."""
    return [item.strip() for item in env_str(name, default).split(",") if item.strip()]


def env_bool(name: str, default: bool = False) -> bool:
    """1, true, yes, on; 0, false, no, off."""
    text = env_str(name, "1" if default else "0").lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={text!r} is not a yes or no; use 1 or 0")


def env_int(name: str, default: int, *, minimum: int = 1, maximum: int = 2**63 - 1) -> int:
    """A whole number within bounds; `_` may group digits."""
    text = env_str(name, str(default))
    try:
        value = int(text)
    except ValueError:
        raise ImproperlyConfigured(
            f"{name}={text!r} is not a whole number; the default is {default}"
        ) from None
    if not minimum <= value <= maximum:
        raise ImproperlyConfigured(f"{name}={value} is out of range; use {minimum} to {maximum}")
    return value


def env_secret(name: str, kept_in: Path) -> str:
    """The variable, or a secret made once and kept where only this user can read it."""
    if given := env_str(name):
        return given
    if not kept_in.exists():
        kept_in.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=kept_in.parent)  # mode 0600
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(64))
        try:
            os.link(draft, kept_in)  # of two processes that start at once, the first one's secret stays
        except FileExistsError:
            pass
        finally:
            os.unlink(draft)
    return kept_in.read_text().strip()


def database_from_url(name: str, url: str) -> dict[str, Any]:
    """`postgres://user:password@host:port/database?sslmode=…` or `sqlite:///path` as Django wants it."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return sqlite_database(Path(unquote(parts.path)))
    if parts.scheme not in {"postgres", "postgresql"} or not parts.path.strip("/"):
        shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        raise ImproperlyConfigured(
            f"{name}={shown!r} is not usable; use postgres://user:password@host:5432/database"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def sqlite_database(path: Path) -> dict[str, Any]:
    """Several processes write: take the write lock at BEGIN, wait for it, and let readers go on meanwhile
    (WAL).
    """
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "TEST": {"NAME": path.with_name(f"test-{path.name}")},
    }


# --- where things are -------------------------------------------------------------------------------------
VAR_DIR = Path(env_str("VAR_DIR", str(BASE_DIR / "var"))).expanduser().resolve()
VAR_DIR.mkdir(parents=True, exist_ok=True)
DATABASE_URL = env_str("DATABASE_URL")
REDIS_URL = env_str("REDIS_URL")
if REDIS_URL and urlsplit(REDIS_URL).scheme not in {"redis", "rediss", "unix"}:
    raise ImproperlyConfigured(f"REDIS_URL={REDIS_URL!r} is not usable; use redis://host:6379/0")

# --- limits: what one person may ask of this site ---------------------------------------------------------
MAX_REQUESTS_PER_RUN = env_int("MAX_REQUESTS_PER_RUN", 1_000_000)
MAX_TRACE_BYTES = env_int("MAX_TRACE_BYTES", 200_000_000)
MAX_TRACE_ROWS = env_int("MAX_TRACE_ROWS", 2_000_000)
MAX_MATRIX_RANKS = env_int("MAX_MATRIX_RANKS", 2_048)  # of a traffic matrix: it is studied while one waits
MAX_MATRICES_PER_OWNER = env_int("MAX_MATRICES_PER_OWNER", 100)
MAX_RECORDS_PER_DOWNLOAD = env_int("MAX_RECORDS_PER_DOWNLOAD", 200_000)  # simulated again to be written
MAX_DOCUMENT_BYTES = env_int("MAX_DOCUMENT_BYTES", 1_000_000)  # a scenario, a config.json, a command line
MAX_ACTIVE_RUNS_PER_OWNER = env_int("MAX_ACTIVE_RUNS_PER_OWNER", 8)
MAX_CELLS_PER_SWEEP = env_int("MAX_CELLS_PER_SWEEP", 10_000)
MAX_REQUESTS_PER_SWEEP = env_int("MAX_REQUESTS_PER_SWEEP", 100_000_000)
MAX_ACTIVE_SWEEPS_PER_OWNER = env_int("MAX_ACTIVE_SWEEPS_PER_OWNER", 2)
MAX_SCENARIOS_PER_OWNER = env_int("MAX_SCENARIOS_PER_OWNER", 1_000)
RATE_LIMIT_PERCENT = env_int("RATE_LIMIT_PERCENT", 100)  # of the usual POSTs per minute and address
RUN_TIME_LIMIT_S = env_int("RUN_TIME_LIMIT_S", 600)
RUN_STALE_AFTER_S = env_int("RUN_STALE_AFTER_S", 8)  # a running run that shows no life is lost
RUN_UNCLAIMED_AFTER_S = env_int("RUN_UNCLAIMED_AFTER_S", 60)  # a queued run that nobody took is queued anew
REAP_EVERY_S = env_int("REAP_EVERY_S", 3)
WORKER_PROCESSES = env_int("WORKER_PROCESSES", 2, maximum=256)

# --- serving ----------------------------------------------------------------------------------------------
DEBUG = env_bool("DEBUG")
HOST = env_str("HOST", "127.0.0.1")
PORT = env_int("PORT", 8000, maximum=65_535)
HTTPS = env_bool("HTTPS")  # people reach the site over TLS: secure cookies, HSTS, redirect
SECRET_KEY = env_secret("SECRET_KEY", VAR_DIR / "secret_key")
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
if not ALLOWED_HOSTS:
    raise ImproperlyConfigured("ALLOWED_HOSTS names no host; write the names that people reach the site by")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
for _origin in CSRF_TRUSTED_ORIGINS:
    if "://" not in _origin:
        raise ImproperlyConfigured(f"CSRF_TRUSTED_ORIGINS holds {_origin!r}; write https://{_origin}")

ROOT_URLCONF = "explorer.urls"
ASGI_APPLICATION = "explorer.asgi.application"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "servestatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "ninja",  # serves the API page's own script and style; without it they would come from a CDN
    "channels",
    "explorer",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "explorer.middleware.ContentSecurityPolicy",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- data -------------------------------------------------------------------------------------------------
DATABASES = {
    "default": database_from_url("DATABASE_URL", DATABASE_URL)
    if DATABASE_URL
    else sqlite_database(VAR_DIR / "trimtab.sqlite3"),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MEDIA_ROOT = VAR_DIR / "media"  # uploaded traces, named by their content's hash; never served as files
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}
MAX_UPLOAD_BYTES = MAX_TRACE_BYTES + 1_000_000  # with the form around it; more is refused before it is read
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * MAX_DOCUMENT_BYTES + 500_000

# --- people -----------------------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{validator}"}
    for validator in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"
SESSION_COOKIE_AGE = 90 * 24 * 3600  # an anonymous person's scenarios hang on the session

# --- words ------------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "explorer" / "locale"]
TIME_ZONE = env_str("TIME_ZONE", "UTC")
USE_TZ = True

# --- files of the page ------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = Path(env_str("STATIC_ROOT", str(BASE_DIR / "staticfiles")))
_plotly = importlib.util.find_spec("plotly")
STATICFILES_DIRS: list[Path | tuple[str, Path]] = [
    BASE_DIR / "static",
    ("report", BASE_DIR / "simcore" / "report" / "style"),  # a memo looks alike on its page and in its file
]
if _plotly is not None and _plotly.origin is not None:
    STATICFILES_DIRS.append(("plotly", Path(_plotly.origin).parent / "package_data"))
# With COLLECTED_STATIC=1 (the image sets it, and runs `collectstatic`), hashed and compressed files are
# served, cacheable for ever; without it, files come straight from where they lie and nothing needs
# collecting.
COLLECTED_STATIC = env_bool("COLLECTED_STATIC")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"
        if COLLECTED_STATIC
        else "django.contrib.staticfiles.storage.StaticFilesStorage",
    },
}
SERVESTATIC_USE_FINDERS = not COLLECTED_STATIC
SERVESTATIC_USE_STATIC_ROOT = False
SERVESTATIC_USE_MANIFEST = COLLECTED_STATIC
SERVESTATIC_MAX_AGE = 60 if COLLECTED_STATIC else 0
SERVESTATIC_ALLOW_ALL_ORIGINS = False

# --- security ---------------------------------------------------------------------------------------------
# plotly.js sets style attributes; scripts come from this site's own files only. Django adds nosniff,
# same-origin referrer and opener, and refuses frames, by default.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS

# --- tasks and sockets ------------------------------------------------------------------------------------
CELERY_BROKER_URL = REDIS_URL or "embedded://localhost"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"visibility_timeout": RUN_TIME_LIMIT_S + 3600} if REDIS_URL else {"path": str(VAR_DIR / "queue.sqlite3")}
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_IMPORTS = ("explorer.sweeping",)
# Workers read their queues in turn, so a run does not wait behind all the chunks of a sweep.
CELERY_TASK_QUEUES = {name: {"exchange": name, "routing_key": name} for name in ("celery", "sweeps")}
CELERY_TASK_ROUTES = {f"explorer.{task}": {"queue": "sweeps"} for task in ("cut_sweep", "evaluate_chunk")}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_IGNORE_RESULT = True  # a run's state and results are rows; the queue only says "look"
CELERY_TASK_SOFT_TIME_LIMIT = RUN_TIME_LIMIT_S
CELERY_TASK_TIME_LIMIT = RUN_TIME_LIMIT_S + 15
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = WORKER_PROCESSES
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False  # the embedded transport has none, so nothing may depend on it
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_TIMEZONE = "UTC"
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    # pubsub, not core: core drops every socket when Redis restarts, pubsub subscribes again
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
    if REDIS_URL
    else {
        "BACKEND": "explorer.embedded.layer.SqliteChannelLayer",
        "CONFIG": {"path": str(VAR_DIR / "bus.sqlite3"), "capacity": 1000},
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env_str("LOG_LEVEL", "WARNING")},
    "loggers": {
        "explorer": {"level": env_str("LOG_LEVEL", "INFO")},
        "django.request": {"level": "ERROR"},  # a mistyped address is not news
    },
}
