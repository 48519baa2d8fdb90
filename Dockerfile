# One image for every part of the distributed mode: `taskmill api`, `taskmill worker`, `taskmill train`.
FROM python:3.11-slim AS build
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY client client
COPY migrations migrations
COPY taskmill taskmill
COPY service service
COPY factory factory
COPY verifiers verifiers
COPY sandbox sandbox
COPY trainer trainer
RUN pip wheel --no-cache-dir --no-deps -w /wheels ./client .

FROM python:3.11-slim
ARG EXTRAS=""
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir -c /wheels/constraints.txt /wheels/taskmill_client-*.whl \
      "taskmill${EXTRAS:+[$EXTRAS]} @ file://$(ls /wheels/taskmill-*.whl)" \
    && useradd --create-home --uid 10001 taskmill && mkdir /data && chown taskmill /data
USER taskmill
ENV TASKMILL_DATA=/data TASKMILL_HOST=0.0.0.0
VOLUME /data
EXPOSE 8700
ENTRYPOINT ["taskmill"]
CMD ["api"]
