/*
 * Preloaded into Postgres (LD_PRELOAD), it makes the machine look slower, as with a network disk and a network:
 * each fdatasync takes COMMIT_DELAY_US longer, and each request of a client is read REQUEST_DELAY_US after it came.
 * A sleeping session costs no CPU time. A proxy in front of Postgres would cost some 40 microseconds for each request.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void sleep_for(const char *variable) {
  const char *given = getenv(variable);
  long us = given ? atol(given) : 0;
  int failure = errno;
  struct timespec left = {us / 1000000, us % 1000000 * 1000};
  /* A signal must not make it shorter. */
  while (us > 0 && nanosleep(&left, &left) != 0 && errno == EINTR);
  errno = failure;
}

int fdatasync(int fd) {
  int result = (int)syscall(SYS_fdatasync, fd);
  sleep_for("COMMIT_DELAY_US");
  return result;
}

/* A session is one process with one thread. The rest of a long request is there when its beginning was delayed. */
static int has_answered = 1;

ssize_t send(int socket, const void *bytes, size_t length, int flags) {
  has_answered = 1;
  return sendto(socket, bytes, length, flags, NULL, 0);
}

ssize_t recv(int socket, void *bytes, size_t length, int flags) {
  ssize_t received = recvfrom(socket, bytes, length, flags, NULL, NULL);
  if (received > 0 && has_answered) {
    has_answered = 0;
    sleep_for("REQUEST_DELAY_US");
  }
  return received;
}
