/*
 * proxy <own port> <target port> <microseconds>: passes the bytes of clients on so much later, and those of the target at once,
 * all on loopback. While a connection is busy it is looked at every TICK_US, and not at each arrival: so the proxy does not take the
 * CPU time that is being measured. For a few connections that carry much, as those to a broker.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TICK_US = 100, CHUNKS = 64, CHUNK_BYTES = 65536, BACKLOG = 128 };

struct chunk {
  long long due_us;
  ssize_t length;
  char bytes[CHUNK_BYTES];
};

static long long delay_us;
static struct sockaddr_in target;

static long long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* Waits while the other side takes nothing: then nothing more is read either, as on a real connection. */
static int send_all(int to, const char *bytes, ssize_t length) {
  ssize_t sent;
  for (; length > 0; bytes += sent, length -= sent)
    if ((sent = send(to, bytes, length, 0)) <= 0) return 0;
  return 1;
}

/* 1 if something came, 0 if there is nothing now, -1 at the end of the connection. */
static int take(int from, struct chunk *chunk) {
  chunk->length = recv(from, chunk->bytes, CHUNK_BYTES, MSG_DONTWAIT);
  if (chunk->length > 0) return 1;
  return chunk->length < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static void carry(int client, int server, struct chunk *chunks, struct chunk *answer) {
  unsigned long taken = 0, passed = 0;
  for (;;) {
    int came = 0;
    if (taken - passed < CHUNKS && (came = take(client, &chunks[taken % CHUNKS])) > 0)
      chunks[taken++ % CHUNKS].due_us = now_us() + delay_us;
    if (came < 0) return;
    for (; passed < taken && chunks[passed % CHUNKS].due_us <= now_us(); passed++)
      if (!send_all(server, chunks[passed % CHUNKS].bytes, chunks[passed % CHUNKS].length)) return;
    int answered = take(server, answer);
    if (answered < 0 || (answered > 0 && !send_all(client, answer->bytes, answer->length))) return;
    struct pollfd both[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (came || answered || passed < taken) usleep(TICK_US);
    else poll(both, 2, -1);
  }
}

static void *serve(void *given) {
  int client = (int)(long)given, server = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct chunk *chunks = malloc((CHUNKS + 1) * sizeof *chunks);
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (chunks != NULL && connect(server, (struct sockaddr *)&target, sizeof target) == 0)
    carry(client, server, chunks, &chunks[CHUNKS]);
  free(chunks);
  close(client);
  close(server);
  return NULL;
}

int main(int count, char **given) {
  if (count != 4) return 2;
  signal(SIGPIPE, SIG_IGN);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(atoi(given[1]))};
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  target = own;
  target.sin_port = htons(atoi(given[2]));
  /* Half a tick is lost before bytes go on, as much before their answer, and a tick takes longer than it should. */
  delay_us = atoll(given[3]) - 2 * TICK_US;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&own, sizeof own) != 0 || listen(listener, BACKLOG) != 0) return 1;
  for (;;) {
    long client = accept(listener, NULL, NULL);
    pthread_t thread;
    if (client >= 0 && pthread_create(&thread, NULL, serve, (void *)client) == 0) pthread_detach(thread);
  }
}
