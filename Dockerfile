# The image of web server, workers and reaper (see compose.yaml); `make run` needs none of this.
FROM python:3.13-slim AS build
WORKDIR /app
COPY requirements.lock ./
# uv by its own hashed lines of the lock, as in the Makefile; then everything else by uv
RUN python -m venv /venv \
 && awk '/^[^ ]/ {wanted = /^uv==/} wanted' requirements.lock > /tmp/uv.lock \
 && /venv/bin/python -m pip install --quiet --no-deps --require-hashes -r /tmp/uv.lock \
 && /venv/bin/uv pip install --python /venv/bin/python --quiet --compile-bytecode --require-hashes --no-deps \
    -r requirements.lock

FROM python:3.13-slim
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends fontconfig fonts-noto-cjk procps \
 && rm -rf /var/lib/apt/lists/* && useradd --create-home trimtab
WORKDIR /app
COPY --from=build /venv /venv
COPY --chown=trimtab . .
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 VAR_DIR=/app/var COLLECTED_STATIC=1 HOST=0.0.0.0
USER trimtab
# The engine is compiled here, so that a new container simulates at once.
RUN python manage.py compilemessages && python manage.py collectstatic --noinput --verbosity 0 \
 && python -m simcore warm && rm -rf var
EXPOSE 8000
CMD ["uvicorn", "explorer.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--ws", "websockets-sansio", \
     "--lifespan", "off", "--no-access-log"]
