# Tallyhook as a container: Node 24 runs the TypeScript as it is, so there is nothing to build.
#   docker build -t tallyhook .
#   docker run --read-only -p 8080:8080 -e DATABASE_URL=… -e AMQP_URL=… -e SIGNING_SECRETS=… tallyhook

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

# Node alone, on what its own image stands on: npm, npx, corepack and yarn are in no layer of this one.
FROM debian:bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /usr/local/bin/node /usr/local/bin/node
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY migrations ./migrations
COPY src ./src
# No account of the system's and without rights. Nothing under /app is its to write, and nothing is written anywhere.
USER 1000:1000
EXPOSE 8080 8081
# Exec form, so that SIGTERM reaches Node itself and it can drain.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPERATOR_PORT || 8081}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["serve"]
