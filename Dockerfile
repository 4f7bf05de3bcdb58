# One image for migrate, worker, beat, Flower and the server for proxies: they differ in their command only.
FROM python:3.12-slim AS pins

ENV PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore \
    ROLLWAY_HOME=/var/lib/rollway

# A named volume takes its owner and mode from the folder it is first mounted on; Envoy's is read by another user.
RUN useradd --create-home --uid 10001 rollway && install -d -o rollway -g rollway -m 700 /var/lib/rollway \
    && install -d -o rollway -g rollway -m 755 /var/lib/envoy

# Where workers work; it has the examples in the end, so that they are named as in a clone.
WORKDIR /app
# Before the code, so that a change of the code does not install everything again.
COPY requirements/base.txt requirements/
RUN pip install --no-deps --require-hashes -r requirements/base.txt

FROM pins AS wheel
# .dockerignore lists what is let in.
COPY . .
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheel .

FROM pins
COPY examples examples
COPY --from=wheel /wheel /wheel
# A clone made under `umask 077` could be read by root only.
RUN chmod -R a+rX /app && pip install --no-deps /wheel/*.whl && pip check

USER rollway
