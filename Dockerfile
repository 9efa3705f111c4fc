# Pfungst on a CPU:  docker build -t pfungst . && docker run --rm -v "$PWD/runs:/work/runs" pfungst examine rn-state --limit 50
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.12-slim
# An index with the CPU builds of torch, if you know one: --build-arg EXTRA_INDEX=... Without it, pip takes torch from the
# default index: on x86 that is the build for NVIDIA GPUs, which works on a CPU too but is several gigabytes larger.
ARG EXTRA_INDEX=
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir ${EXTRA_INDEX:+--extra-index-url "$EXTRA_INDEX"} \
        --constraint /wheels/constraints.txt "$(ls /wheels/*.whl)[torch,web]" \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 pfungst \
    && mkdir /work && chown pfungst /work
USER pfungst
WORKDIR /work
ENTRYPOINT ["pfungst"]
