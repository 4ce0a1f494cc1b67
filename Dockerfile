# Tallyhook as a container. Node 24 runs TypeScript directly: there is no build step.
#   docker build -t tallyhook .
#   docker run --read-only -p 8080:8080 -e DATABASE_URL=… -e AMQP_URL=… -e SIGNING_SECRETS=… tallyhook

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

# Only Node, on the base of its own image: npm, npx, corepack and yarn are in no layer of this image.
FROM debian:bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /usr/local/bin/node /usr/local/bin/node
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY migrations ./migrations
COPY contracts ./contracts
COPY src ./src
# A user without an account and without rights. It cannot write under /app, and the service writes no files.
USER 1000:1000
EXPOSE 8080 8081
# Exec form: SIGTERM reaches Node itself, so it can drain.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPERATOR_PORT || 8081}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["serve"]
