# Floodmark with Spark and Java, to look at checkpoints and to run streams:
#
#   docker build -t floodmark .
#   docker run --rm -v "$PWD/data:/data" floodmark inspect /data/checkpoints/sales
#   docker run --rm -v "$PWD:/app" -w /app floodmark run sales.py
#
# Name a digest of the base image in a build that has to be repeatable.
FROM eclipse-temurin:17-jre-noble AS base
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv tini procps \
 && rm -rf /var/lib/apt/lists/*

FROM base AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
COPY man man
RUN python3 -m venv /opt/floodmark \
 && /opt/floodmark/bin/pip install --no-cache-dir -c constraints.txt '.[all]' \
 && /opt/floodmark/bin/python -m compileall -q /opt/floodmark/lib

FROM base
# The user owns its home, where connectors are cached, and nothing else.
RUN useradd --create-home --uid 10001 floodmark
COPY --from=build /opt/floodmark /opt/floodmark
ENV PATH=/opt/floodmark/bin:$PATH PYTHONUNBUFFERED=1
USER floodmark
WORKDIR /home/floodmark
# tini hands SIGTERM on, which lets the running batch finish; give it time: docker stop -t 900.
ENTRYPOINT ["tini", "--", "floodmark"]
CMD ["--help"]
