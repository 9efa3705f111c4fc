# Pfungst on a CPU:  docker build -t pfungst . && docker run --rm -v "$PWD/runs:/work/runs" pfungst examine rn-state --limit 50
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.12-slim
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
# The CPU build of torch comes from its own index; everything else from the constraints that are tested.
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
        --constraint /wheels/constraints.txt "$(ls /wheels/*.whl)[torch,web]" \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 pfungst \
    && mkdir /work && chown pfungst /work
USER pfungst
WORKDIR /work
ENTRYPOINT ["pfungst"]
