# Tallyhook as a container image. Node 24 runs TypeScript directly: there is no build step.
#   docker build -t tallyhook .              npm's packages, and Node alone on Debian
#   npm run image -- --base node:24-slim     by buildah, on any image that has Node 24 in its PATH: docs/deploy.md

ARG BASE=node-alone

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

# Only Node, on the base of its own image: npm, npx, corepack and yarn are in no layer.
FROM debian:bookworm-slim AS node-alone
COPY --from=packages /usr/local/bin/node /usr/local/bin/node

FROM ${BASE}
LABEL org.opencontainers.image.title="tallyhook" \
      org.opencontainers.image.description="Webhook receiver and event relay: verifies, tallies in Postgres, relays to RabbitMQ." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY migrations ./migrations
COPY contracts ./contracts
COPY docs ./docs
COPY src ./src
# A user without an account and without rights. It cannot write under /app, and the service writes no files.
USER 1000:1000
EXPOSE 8080 8081
# Docker's own: images in the OCI format have none, so what runs them is told (docs/deploy.md).
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s CMD ["node", "src/main.ts", "healthcheck"]
# Exec form: SIGTERM reaches Node itself, so it can drain.
ENTRYPOINT ["node", "src/main.ts"]
CMD ["serve"]
