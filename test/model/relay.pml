/* The relay's protocol (docs/relay.md), for spin: one job, two replicas, one exchange. The words are those of the code.
 *
 * - One step (d_step) is one synchronous stretch of JavaScript, or one statement of Postgres at its commit. A statement that is sent
 *   at the end of a stretch may run in that step, if nothing that it reads comes from memory after that.
 * - A frozen leader is one that takes no step for long: its messages are on the wire without a limit, its statements come late, and
 *   its own clock has ended its lease before the database's.
 * - Time is one step: "the limit has passed", "it is due".
 * - A set of events is a bit mask: bit k is the event with the k-th sequence. Each write has one event, so each batch has one.
 * - Nothing guards a poll: a relay that goes round for nothing is found by the property `drained`.
 * - RULE(n) is the rule Rn of docs/relay.md. The value `without` switches one rule off. Faults have budgets. Both are values that the
 *   program reads when it starts, so that it is compiled once (scripts/model.ts).
 */

#define RULE(n) (without != n)
#define EVENTS_MAX 4
#define NOBODY 3
#define B(n) (1 << (n))
#define FIRST(m) ((m) & (-(m)))
#define BEFORE(m) ((m) - 1) /* all events before the single event m */
#define COMMITTED (B(committed) - 1)

c_decl {
\#include <stdlib.h>
  static int setting(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
  }
}

hidden byte without;                     /* the number of the rule that is switched off; 0 for none */
hidden byte events;                      /* how many the job may get */
hidden byte writers;                     /* replicas that receive deliveries of the job: 1 or 2 */
hidden byte part, rest, each, more, one, edge; /* within a step */

/* ---- what may still happen ---- */
byte leases;                             /* a leader's own clock ends its lease: it is frozen, or cut off */
byte crashes;
byte connections;                        /* the broker's connection is lost */
byte nacks;
byte writeFailures;                      /* a write of the intake without a known result */
byte settleFailures;                     /* a write of results without a known result */
byte parks, retries, discards;           /* by an operator */
byte bounds;                             /* a load leaves something */
byte rooms;                              /* there is no room for what is handed over */

/* ---- Postgres ---- */
byte committed;                          /* how many events the job has */
byte batches, held;                      /* outbox_batches, outbox_held */
byte parked, notDue;                     /* of those that are held */
bool isHeld; byte holdVersion, lastWriter = 98; /* jobs.is_held, hold_version, last_writer */
byte version;                            /* outbox_version */
byte holder = NOBODY, epoch;             /* relay_lease */
byte strays, strayWriter;                /* writes that nobody waits for any more, and may still commit */
byte strayConfirmed, strayRetried, strayHeld, strayBy; /* the same of one write of results, and who sent it */

/* ---- the exchange ---- */
byte arrived;                            /* events with a first copy, or discarded */
byte allowed[EVENTS_MAX];                /* copies that may still be sent: one, and one for each attempt whose result was lost */
byte pastLimit;                          /* parked for longer than the limit */
byte wire[2], oldWire[2];                /* on the way; and on the way of a lost connection */
byte confirms[2], nacked[2];             /* on the way back */

/* ---- a replica: intake and hand-off ---- */
#define SENT 1
#define DONE 2
byte writing[2];                         /* its write: 0, SENT, or DONE (committed) and not answered */
byte written[2]; bool changed[2], hasHeld[2]; /* what it has committed: its event, writerChanged, held */
byte writer[2], writersDrawn;            /* mark.writer */
bool unknown[2];                         /* a write failed since the relay looked */

/* ---- a replica: lease, publisher, decisions ---- */
bool leads[2], ready[2];
byte leaseEpoch[2], relayEpoch[2];
byte known[2]; bool fresh[2];            /* the version, and whether it was read just now */
#define OPEN(r) (leads[r] && leaseEpoch[r] == relayEpoch[r] && ready[r])

/* ---- a replica: window, in flight, results ---- */
byte inMemory[2], lane[2], inFlight[2];  /* window.has; what waits in the lane; its first, at the broker */
byte ownRow[2];                          /* of inMemory: loaded from outbox_held */
bool isStale[2];                         /* memory was forgotten while its first was in flight */
byte closed[2], reopens[2], reopensLater[2]; /* lane.closed; how often it is to be reopened; when the write is answered */
byte confirmed[2], retried[2], toHold[2]; /* results */
byte sentResults[2];                     /* published by it, with no written result */

/* ---- a replica: arrivals ---- */
bool caughtUp[2], hasSince[2]; byte since[2]; /* since: what need not be looked at */
byte gate[2], gated[2], gatedNew[2];     /* gate: 0, 1 opens with the running load, 2 with the next one; what waits for which */
bool loading[2], fellBehind[2], forgotten[2], overtaken[2], waits[2];
byte late[2]; bool lateChanged[2]; byte lateGated[2]; /* late writes; of these, the first whose writer changed */
byte missed[2];
bool wasWriting[2], isAfter[2];          /* the write in flight began before the running load, or after it */
byte leftOut[2], begunAfter[2];          /* the events of such writes */
byte foundBatches[2], foundToHold[2], foundHeld[2], bound[2], seen[2]; /* what a load has read */
byte firstVersion[2], lastVersion[2];    /* of decisions: as read first, and with the batches */

/* ---- a replica: its rounds ---- */
#define IDLE 0
#define SETTLE 1
#define ELSEWHERE 2
#define RELEASE 3
#define RELEASE_LOCKED 4
#define SETTLED 5
#define KNOW 6
#define BEGIN 7
#define READ 8
#define ANSWER 9
#define ARRIVE 10
byte at[2];
byte sConfirmed[2], sRetried[2], sHeld[2]; /* what is being settled */
byte elsewhere[2];                       /* of these, confirmed and no longer in a batch */
byte freedVersion[2];                    /* jobs.hold_version, as RELEASE_JOBS has read it */

/* ================ properties ================ */

/* Nothing is lost: what has no copy on the exchange is in the outbox. */
#define NOTHING_LOST ((COMMITTED & ~(batches | held | arrived)) == 0)
/* Nothing waits for ever, once faults end: the outbox has only what is parked, and what is behind that. */
#define UNPARKED BEFORE(FIRST(parked)) /* all, if nothing is parked */
#define DRAINED (committed >= 1 && writing[0] == 0 && writing[1] == 0 && ((batches | held) & UNPARKED) == 0)

/* ================ window, gates, late writes ================ */

inline drop(r, m) { inMemory[r] = inMemory[r] & ~(m); ownRow[r] = ownRow[r] & ~(m) }
inline miss(r, m) {
  drop(r, (m));
  if :: loading[r] -> missed[r] = missed[r] | (m) :: else fi
}
inline fallBehind(r) {
  caughtUp[r] = false; hasSince[r] = false; since[r] = 0;
  part = gated[r] | gatedNew[r]; gated[r] = 0; gatedNew[r] = 0; gate[r] = 0;
  if :: loading[r] -> part = part | late[r]; late[r] = 0; lateChanged[r] = false; lateGated[r] = 0; fellBehind[r] = true :: else fi;
  miss(r, part)
}
inline forget(r) {
  fallBehind(r);
  drop(r, lane[r]); lane[r] = 0;
  isStale[r] = true; forgotten[r] = true
}
/* outcomes.hold of all of m, which are in batches. What waits in the lane is held, too; rows of their own are loaded again. */
inline holdAll(r, m) {
  more = (m) & ~ownRow[r];
  if :: RULE(32) -> more = more | (lane[r] & ~ownRow[r]); drop(r, lane[r] & ownRow[r]); lane[r] = 0 :: else fi;
  inMemory[r] = inMemory[r] | more; toHold[r] = toHold[r] | more;
  if :: RULE(32) -> do :: more -> closed[r]++; more = more & ~FIRST(more) :: else -> break od :: else fi
}
inline admit(r, m) {
  if
  :: closed[r] > 0 ->
     if :: (m) & ownRow[r] -> drop(r, (m)) :: else -> holdAll(r, (m)) fi
  :: else -> inMemory[r] = inMemory[r] | (m); lane[r] = lane[r] | (m)
  fi
}
inline admitAll(r, m) { rest = (m); do :: rest -> each = FIRST(rest); rest = rest & ~each; admit(r, each) :: else -> break od }
inline take(r, m, isChanged) {
  if :: (isChanged) && RULE(3) -> gate[r] = (RULE(7) -> 2 : (loading[r] -> 1 : 2)) :: else fi;
  if
  :: (m) == 0 -> skip
  :: else ->
     if
     :: gate[r] == 2 -> gatedNew[r] = gatedNew[r] | (m); inMemory[r] = inMemory[r] | (m)
     :: gate[r] == 1 -> gated[r] = gated[r] | (m); inMemory[r] = inMemory[r] | (m)
     :: else -> admit(r, (m))
     fi
  fi
}
/* The write has an answer, or has failed: whoever waited for it goes on. */
inline endFlight(r) {
  writing[r] = 0; waits[r] = false; wasWriting[r] = false; isAfter[r] = false;
  reopens[r] = reopens[r] + reopensLater[r]; reopensLater[r] = 0
}
inline forgetWrite(r) { written[r] = 0; changed[r] = false; hasHeld[r] = false }
/* arrivals.receive */
inline receive(r, hasRoom) {
  one = (hasHeld[r] -> 0 : written[r]);
  if
  :: (caughtUp[r] || !RULE(6)) && OPEN(r) && hasRoom -> take(r, one, changed[r])
  :: else ->
     if
     :: caughtUp[r] || !loading[r] || fellBehind[r] -> if :: RULE(9) -> fallBehind(r) :: else fi; miss(r, one)
     :: else ->
        if :: changed[r] && !lateChanged[r] -> lateChanged[r] = true; lateGated[r] = one :: else fi;
        late[r] = late[r] | one
     fi
  fi
}
/* decisions.note */
inline note(r, found) {
  if :: (found) == version -> fresh[r] = true :: else fi;
  if :: known[r] != (found) -> known[r] = (found); overtaken[r] = true; forget(r) :: else fi
}

/* ================ statements ================ */

/* ledger/record.ts, by the writer `by`: the k-th event. */
inline tally(by) {
  one = B(committed); committed++; allowed[committed - 1] = 1;
  part = (lastWriter != by); lastWriter = by;
  if
  :: isHeld && RULE(4) -> holdVersion++; held = held | one; rest = 1
  :: else -> batches = batches | one; rest = 0
  fi
}
/* ledger/hold.ts */
inline hold() { isHeld = true; holdVersion++ }
/* They leave outbox_held. */
inline endHeld(m) {
  held = held & ~(m); parked = parked & ~(m); notDue = notDue & ~(m); pastLimit = pastLimit & ~(m);
  assert(NOTHING_LOST)
}
/* relay/batch-results.ts and held.ts. `own`: what the relay has loaded from outbox_held. */
inline settle(c, rt, h, own, tells) {
  part = ((rt) | (h)) & ~(own);
  if :: RULE(38) -> part = part & batches :: else fi;
  rest = (c) & (own); /* SETTLE deletes these */
  each = (c) & ~(own) & ~batches; /* these are looked for elsewhere */
  batches = batches & ~part & ~((c) & ~(own));
  held = held | part;
  notDue = notDue | (part & (rt)) | ((rt) & (own) & held & ~parked);
  if
  :: part -> hold(); if :: (tells) && RULE(40) -> version++ :: else fi
  :: else
  fi;
  endHeld(rest)
}
/* Its write of results may be carried out later. Rows of their own are then due later, which is left out. */
#define STRAY_RESULTS (strayConfirmed | strayRetried | strayHeld)
inline leaveStray(x, id) {
  if
  :: at[x] == SETTLE ->
     strayConfirmed = sConfirmed[x]; strayRetried = sRetried[x] & ~ownRow[x]; strayHeld = sHeld[x] & ~ownRow[x]; strayBy = id
  :: else
  fi
}
inline endStray() { strayConfirmed = 0; strayRetried = 0; strayHeld = 0; strayBy = 0 }
/* What a replica had sent, and has no written result of, may come again: it was lost with the replica's memory. */
inline excuse(m) {
  rest = 0;
  do
  :: rest < EVENTS_MAX -> if :: (m) & B(rest) -> allowed[rest]++ :: else fi; rest++
  :: else -> break
  od;
  rest = 0
}

/* ================ a replica: intake, publisher, decisions ================ */

/* Attempts that do not count: outcomes.keep. */
inline loseBroker(r) {
  connections--; ready[r] = false; confirms[r] = 0; nacked[r] = 0; wire[r] = 0;
  excuse(inFlight[r]); sentResults[r] = sentResults[r] & ~inFlight[r];
  lane[r] = lane[r] | inFlight[r]; inFlight[r] = 0;
  if :: isStale[r] && RULE(26) -> forget(r) :: else fi
}

proctype Replica(byte r) {
  do
  /* the intake: one write of the job at a time (R2) */
  :: d_step { r < writers && writing[r] == 0 && committed + strays + (writing[0] == SENT) + (writing[1] == SENT) < events ->
       writing[r] = SENT; isAfter[r] = loading[r]; wasWriting[r] = false;
       printf("replica %d begins a write\n", r) }
  :: d_step { writing[r] == SENT ->
       tally(writer[r]);
       written[r] = one; changed[r] = part; hasHeld[r] = rest; writing[r] = DONE;
       if :: loading[r] && wasWriting[r] -> leftOut[r] = leftOut[r] | one :: else fi;
       if :: loading[r] && isAfter[r] -> begunAfter[r] = begunAfter[r] | one :: else fi;
       printf("event {%d} is committed by replica %d: writer changed %d, held %d\n", one, r, part, rest) }
  :: d_step { writing[r] == DONE -> printf("replica %d has its answer\n", r);
       endFlight(r); receive(r, true); forgetWrite(r) }
  :: d_step { writing[r] == DONE && rooms > 0 && caughtUp[r] -> printf("replica %d has its answer, and no room\n", r);
       rooms--; endFlight(r); receive(r, false); forgetWrite(r) }
  :: d_step { writing[r] != 0 && writeFailures > 0 ->
       printf("a write of replica %d fails, and nobody knows its result\n", r);
       writeFailures--;
       if :: writing[r] == SENT -> strays++; strayWriter = writer[r] :: else fi;
       endFlight(r); forgetWrite(r); unknown[r] = true;
       if :: RULE(5) -> writer[r] = writersDrawn; writersDrawn++ :: else fi }

  /* in-flight.ts: the first entry of the lane goes to the broker */
  :: d_step { lane[r] && ready[r] && (OPEN(r) || !RULE(30)) && (fresh[r] || !RULE(25)) &&
       (inFlight[r] == 0 || (!RULE(28) && wire[r] == 0)) ->
       one = FIRST(lane[r]); lane[r] = lane[r] & ~one;
       printf("replica %d publishes event {%d}\n", r, one);
       assert((one & pastLimit) == 0); /* a parked event stays away past its limit */
       inFlight[r] = inFlight[r] | one; wire[r] = wire[r] | one; isStale[r] = false; sentResults[r] = sentResults[r] | one;
       rest = 0; do :: B(rest) != one -> rest++ :: else -> break od;
       assert(allowed[rest] > 0); /* copies are bounded: one, and one for each attempt whose result was lost */
       allowed[rest]-- }
  :: d_step { confirms[r] & inFlight[r] -> printf("event {%d} is confirmed to replica %d\n", confirms[r], r);
       one = FIRST(confirms[r] & inFlight[r]); confirms[r] = confirms[r] & ~one;
       confirmed[r] = confirmed[r] | one; inFlight[r] = inFlight[r] & ~one;
       if :: !RULE(37) -> drop(r, one) :: else fi }
  :: d_step { nacked[r] & inFlight[r] -> printf("event {%d} is nacked to replica %d\n", nacked[r], r);
       one = FIRST(nacked[r] & inFlight[r]); nacked[r] = nacked[r] & ~one; inFlight[r] = inFlight[r] & ~one;
       retried[r] = retried[r] | one; sentResults[r] = sentResults[r] & ~one; excuse(one);
       if :: RULE(32) -> closed[r]++; holdAll(r, 0) :: else fi }
  :: d_step { ready[r] && connections > 0 && inFlight[r] ->
       printf("replica %d loses the broker, and what was on the way arrives\n", r);
       oldWire[r] = oldWire[r] | wire[r]; loseBroker(r) }
  :: d_step { ready[r] && connections > 0 && inFlight[r] && wire[r] ->
       printf("replica %d loses the broker, with what was on the way\n", r);
       loseBroker(r) }
  :: d_step { !ready[r] -> ready[r] = true; printf("replica %d has the broker again\n", r) }

  /* decisions.ts: the version is read beside a round */
  :: d_step { leads[r] && (known[r] != version || !fresh[r]) -> printf("replica %d reads the version beside its round\n", r);
       note(r, version) }
  od
}

/* ================ a replica: its rounds ================ */

inline readHeld(r) {
  each = held & ~parked & ~notDue & ~(inMemory[r] & ownRow[r]);
  part = held & (parked | notDue);
  if :: part && RULE(35) -> each = each & BEFORE(FIRST(part)) :: else fi;
  foundHeld[r] = each
}
inline readBatches(r, leaves) {
  lastVersion[r] = version; seen[r] = batches | COMMITTED;
  each = batches & ~(inMemory[r] & ~ownRow[r]);
  if :: RULE(19) -> each = each & ~leftOut[r] :: else fi;
  if :: hasSince[r] -> each = each & ~since[r] :: else fi;
  bound[r] = 0;
  if :: leaves -> bound[r] = FIRST(each & ~FIRST(each)); each = each & BEFORE(bound[r]) :: else fi;
  foundBatches[r] = each; foundToHold[r] = (isHeld -> each : 0)
}
/* the stretch that begins a load, with the first of its statements: what is held first (R12) */
inline startLoad(r) {
  printf("replica %d begins a load\n", r);
  loading[r] = true; fellBehind[r] = false; missed[r] = 0; late[r] = 0; lateChanged[r] = false; lateGated[r] = 0;
  wasWriting[r] = (writing[r] != 0); isAfter[r] = false; leftOut[r] = (writing[r] == DONE -> written[r] : 0); begunAfter[r] = 0;
  if :: gate[r] -> gate[r] = 1 :: else fi;
  gated[r] = gated[r] | gatedNew[r]; gatedNew[r] = 0;
  if :: RULE(12) -> readHeld(r) :: else -> readBatches(r, false) fi;
  at[r] = READ
}
inline endLoad(r) {
  loading[r] = false; fellBehind[r] = false; forgotten[r] = false; missed[r] = 0;
  late[r] = 0; lateChanged[r] = false; lateGated[r] = 0; wasWriting[r] = false; isAfter[r] = false;
  foundBatches[r] = 0; foundToHold[r] = 0; foundHeld[r] = 0; bound[r] = 0; seen[r] = 0; leftOut[r] = 0; begunAfter[r] = 0;
  firstVersion[r] = 0; lastVersion[r] = 0; overtaken[r] = false; at[r] = IDLE
}
/* relay.writeAndLoad, behind its write, and arrivals.load up to its first statement */
inline beginLoad(r) {
  if
  :: !leads[r] -> forget(r); endLoad(r)
  :: else ->
     if :: leaseEpoch[r] != relayEpoch[r] && RULE(31) -> forget(r) :: else fi;
     relayEpoch[r] = leaseEpoch[r];
     if
     :: !OPEN(r) -> if :: RULE(27) -> forget(r) :: else -> fallBehind(r) fi; endLoad(r)
     :: else ->
        if :: unknown[r] -> unknown[r] = false; if :: RULE(16) -> fallBehind(r) :: else fi :: else fi;
        firstVersion[r] = version; overtaken[r] = false; at[r] = KNOW
     fi
  fi
}
inline arrive(r) {
  /* nothing goes that is behind an event which is not in memory */
  edge = bound[r];
  if :: missed[r] && (edge == 0 || FIRST(missed[r]) < edge) -> edge = FIRST(missed[r]) :: else fi;
  if :: !RULE(14) -> edge = 0 :: else fi;
  more = (edge -> BEFORE(edge) : 255); bound[r] = edge; seen[r] = seen[r] & more; missed[r] = missed[r] & more;
  /* takeLate */
  foundBatches[r] = foundBatches[r] & more; foundHeld[r] = foundHeld[r] & more;
  one = 1;
  do
  :: one < B(EVENTS_MAX) ->
     if
     :: late[r] & one ->
        part = (lateChanged[r] && lateGated[r] == one);
        if
        :: bound[r] == 0 || one < bound[r] -> take(r, one, part)
        :: else -> take(r, 0, part); drop(r, one)
        fi
     :: else
     fi;
     one = one * 2
  :: else -> break
  od;
  if :: lateChanged[r] && lateGated[r] == 0 -> take(r, 0, true) :: else fi;
  late[r] = 0; lateChanged[r] = false; lateGated[r] = 0;
  foundBatches[r] = foundBatches[r] & ~inMemory[r]; foundHeld[r] = foundHeld[r] & ~inMemory[r] & ~foundBatches[r];
  if :: RULE(20) -> foundBatches[r] = foundBatches[r] & ~begunAfter[r] :: else fi;
  foundToHold[r] = foundToHold[r] & foundBatches[r];
  ownRow[r] = ownRow[r] | foundHeld[r];
  one = 1;
  do
  :: one < B(EVENTS_MAX) ->
     if
     :: (foundBatches[r] | foundHeld[r]) & one ->
        if
        :: RULE(8) ->
           part = (gated[r] | gatedNew[r]) & BEFORE(one); gated[r] = gated[r] & ~part; gatedNew[r] = gatedNew[r] & ~part;
           admitAll(r, part)
        :: else
        fi;
        if
        :: (foundToHold[r] & one) && RULE(13) -> holdAll(r, one)
        :: else -> admit(r, one)
        fi
     :: else
     fi;
     one = one * 2
  :: else -> break
  od;
  if
  :: bound[r] == 0 && (!fellBehind[r] || !RULE(15)) ->
     caughtUp[r] = true; hasSince[r] = true; since[r] = seen[r];
     part = gated[r]; gated[r] = 0; if :: gate[r] == 1 -> gate[r] = 0 :: else fi;
     admitAll(r, part)
  :: else -> fallBehind(r)
  fi;
  printf("replica %d ends its load: caught up %d, in its lane {%d}\n", r, caughtUp[r], lane[r]);
  endLoad(r)
}
/* arrivals.load, behind its last wait */
inline endSearch(r) {
  if
  :: (unknown[r] && RULE(16)) || !OPEN(r) -> unknown[r] = false; fallBehind(r); endLoad(r)
  :: else ->
     unknown[r] = false;
     if :: !RULE(22) -> note(r, lastVersion[r]); forgotten[r] = false; firstVersion[r] = lastVersion[r] :: else fi;
     if
     :: forgotten[r] && RULE(23) -> beginLoad(r)
     :: else ->
        if
        :: lastVersion[r] != firstVersion[r] && RULE(24) -> fallBehind(r); foundHeld[r] = 0; arrive(r)
        :: else -> arrive(r)
        fi
     fi
  fi
}
/* result-writes.ts, behind the answer */
inline endWrite(r) {
  drop(r, sConfirmed[r] | sRetried[r] | sHeld[r]); sentResults[r] = sentResults[r] & ~sConfirmed[r];
  part = sRetried[r] | sHeld[r]; rest = 0;
  do :: part -> rest++; part = part & ~FIRST(part) :: else -> break od;
  if
  :: !RULE(32) -> skip
  :: else -> if :: writing[r] && RULE(33) -> reopensLater[r] = reopensLater[r] + rest :: else -> reopens[r] = reopens[r] + rest fi
  fi;
  sConfirmed[r] = 0; sRetried[r] = 0; sHeld[r] = 0; freedVersion[r] = 0; elsewhere[r] = 0; at[r] = IDLE
}

proctype Rounds(byte r) {
  do
  /* a round begins: lanes are reopened, and results written */
  :: d_step { at[r] == IDLE ->
       if
       :: reopens[r] > 0 ->
          rest = reopens[r]; reopens[r] = 0;
          part = gated[r] | gatedNew[r];
          if :: part && RULE(34) -> gated[r] = 0; gatedNew[r] = 0; closed[r] = closed[r] - rest; holdAll(r, part)
          :: else -> closed[r] = closed[r] - rest
          fi
       :: else
       fi;
       if
       :: confirmed[r] | retried[r] | toHold[r] ->
          sConfirmed[r] = confirmed[r]; sRetried[r] = retried[r]; sHeld[r] = toHold[r];
          confirmed[r] = 0; retried[r] = 0; toHold[r] = 0; at[r] = SETTLE
       :: else -> beginLoad(r)
       fi }
  :: d_step { at[r] == SETTLE ->
       printf("results of replica %d are written: confirmed {%d}, to retry {%d}, to hold {%d}\n",
         r, sConfirmed[r], sRetried[r], sHeld[r]);
       settle(sConfirmed[r], sRetried[r], sHeld[r], ownRow[r], holder != r);
       elsewhere[r] = each;
       at[r] = (each -> ELSEWHERE : (rest -> RELEASE : SETTLED)) }
  :: d_step { at[r] == ELSEWHERE -> /* END_ELSEWHERE */
       printf("replica %d ends event {%d} where it is now\n", r, elsewhere[r]);
       part = elsewhere[r] & held; rest = part | (sConfirmed[r] & ownRow[r]); elsewhere[r] = 0;
       if :: RULE(41) -> endHeld(part) :: else fi;
       at[r] = (rest -> RELEASE : SETTLED) }
  :: d_step { at[r] == RELEASE -> /* RELEASE_JOBS reads */
       if :: held == 0 && isHeld -> freedVersion[r] = holdVersion; at[r] = RELEASE_LOCKED :: else -> at[r] = SETTLED fi }
  :: d_step { at[r] == RELEASE_LOCKED -> /* and has its lock */
       printf("replica %d ends the hold of the job\n", r);
       if :: holdVersion == freedVersion[r] || !RULE(36) -> isHeld = false :: else fi; at[r] = SETTLED }
  :: d_step { (at[r] >= SETTLE && at[r] <= SETTLED) && settleFailures > 0 ->
       printf("replica %d does not know whether its results are written\n", r);
       settleFailures--;
       leaveStray(r, r);
       if
       :: RULE(39) ->
          confirmed[r] = confirmed[r] | sConfirmed[r]; retried[r] = retried[r] | sRetried[r]; toHold[r] = toHold[r] | sHeld[r];
          sConfirmed[r] = 0; sRetried[r] = 0; sHeld[r] = 0; freedVersion[r] = 0; elsewhere[r] = 0; at[r] = IDLE
       :: else -> endWrite(r)
       fi }
  :: d_step { at[r] == SETTLED -> endWrite(r); beginLoad(r) }
  :: d_step { at[r] == SETTLED -> endWrite(r) } /* a round that only writes */

  /* a load */
  :: d_step { at[r] == KNOW -> /* the version has come */
       forgotten[r] = false;
       if :: !overtaken[r] && RULE(22) -> note(r, firstVersion[r]) :: else fi;
       forgotten[r] = false;
       if
       :: !caughtUp[r] -> fallBehind(r); waits[r] = (writing[r] != 0 && RULE(11)); 
          if :: waits[r] -> at[r] = BEGIN :: else -> startLoad(r) fi
       :: else -> startLoad(r)
       fi }
  :: d_step { at[r] == BEGIN && !waits[r] -> startLoad(r) }
  :: d_step { at[r] == READ -> /* the second statement */
       if :: RULE(12) -> readBatches(r, false) :: else -> readHeld(r) fi;
       printf("replica %d has read what is held {%d}, and in batches {%d}\n", r, foundHeld[r], foundBatches[r]);
       at[r] = ANSWER }
  :: d_step { at[r] == READ && bounds > 0 && RULE(12) && (batches & ~inMemory[r] & ~FIRST(batches & ~inMemory[r])) ->
       bounds--; readBatches(r, true);
       printf("replica %d has read what is held {%d}, and in batches {%d}, and leaves the rest\n", r, foundHeld[r], foundBatches[r]);
       at[r] = ANSWER }
  :: d_step { at[r] == ANSWER ->
       waits[r] = ((foundHeld[r] | foundBatches[r]) != 0 && writing[r] != 0 && RULE(10));
       if :: waits[r] -> at[r] = ARRIVE :: else -> endSearch(r) fi }
  :: d_step { at[r] == ARRIVE && !waits[r] -> endSearch(r) }
  od
}

/* ================ the exchange, time, operators, faults ================ */

inline arrives(m) {
  if
  :: (arrived & (m)) == 0 ->
     printf("the first copy of event {%d} arrives\n", m);
     assert((arrived & BEFORE(m)) == BEFORE(m)); /* first copies arrive in order */
     arrived = arrived | (m)
  :: else
  fi
}
inline lead(r) {
  printf("replica %d leads\n", r);
  if :: holder != r -> epoch++ :: else fi;
  holder = r; leaseEpoch[r] = epoch; leads[r] = true; fresh[r] = (known[r] == version || pastLimit == 0)
}
inline endLease(r) {
  leases--; leads[r] = false; printf("replica %d is frozen or cut off: its lease has ended\n", r); excuse(sentResults[r])
}
inline park(m) {
  printf("an operator parks event {%d}\n", m);
  parks--; batches = batches & ~(m); held = held | (m); parked = parked | (m); notDue = notDue & ~(m); hold();
  if :: RULE(21) -> version++ :: else fi
}
inline crash(r) {
  printf("replica %d is killed\n", r);
  crashes--; excuse(sentResults[r]);
  if :: writing[r] == SENT -> strays++; strayWriter = writer[r] :: else fi;
  leaveStray(r, NOBODY + 1);
  oldWire[r] = oldWire[r] | wire[r]; wire[r] = 0; confirms[r] = 0; nacked[r] = 0;
  if :: holder == r -> holder = NOBODY :: else fi;
  writing[r] = 0; forgetWrite(r); unknown[r] = false; writer[r] = writersDrawn; writersDrawn++;
  leads[r] = false; ready[r] = true; leaseEpoch[r] = 0; relayEpoch[r] = 99; known[r] = 99; fresh[r] = false;
  inMemory[r] = 0; lane[r] = 0; inFlight[r] = 0; ownRow[r] = 0; isStale[r] = false;
  closed[r] = 0; reopens[r] = 0; reopensLater[r] = 0;
  confirmed[r] = 0; retried[r] = 0; toHold[r] = 0; sentResults[r] = 0; caughtUp[r] = false; hasSince[r] = false; since[r] = 0;
  gate[r] = 0; gated[r] = 0; gatedNew[r] = 0; waits[r] = false;
  sConfirmed[r] = 0; sRetried[r] = 0; sHeld[r] = 0; freedVersion[r] = 0; elsewhere[r] = 0;
  endLoad(r)
}

proctype World() {
  do
  :: d_step { oldWire[0] -> one = FIRST(oldWire[0]); oldWire[0] = oldWire[0] & ~one; arrives(one) }
  :: d_step { oldWire[1] -> one = FIRST(oldWire[1]); oldWire[1] = oldWire[1] & ~one; arrives(one) }
  :: d_step { wire[0] -> one = FIRST(wire[0]); wire[0] = wire[0] & ~one; confirms[0] = confirms[0] | one; arrives(one) }
  :: d_step { wire[1] -> one = FIRST(wire[1]); wire[1] = wire[1] & ~one; confirms[1] = confirms[1] | one; arrives(one) }
  :: d_step { wire[0] && nacks > 0 -> nacks--; one = FIRST(wire[0]); wire[0] = wire[0] & ~one; nacked[0] = nacked[0] | one }
  :: d_step { wire[1] && nacks > 0 -> nacks--; one = FIRST(wire[1]); wire[1] = wire[1] & ~one; nacked[1] = nacked[1] | one }
  :: d_step { !leads[0] && (holder != 1 || !leads[1] || !RULE(29)) -> lead(0) }
  :: d_step { !leads[1] && (holder != 0 || !leads[0] || !RULE(29)) -> lead(1) }
  :: d_step { leases > 0 && leads[0] -> endLease(0) }
  :: d_step { leases > 0 && leads[1] -> endLease(1) }
  :: d_step { notDue -> notDue = 0; printf("a retry is due\n") }
  :: d_step { parked & ~pastLimit -> printf("the limit has passed\n");
       pastLimit = parked;
       if :: known[0] != version -> fresh[0] = false :: else fi;
       if :: known[1] != version -> fresh[1] = false :: else fi }
  :: d_step { parks > 0 && ((batches | held) & ~parked & 1) -> park(1) }
  :: d_step { parks > 0 && ((batches | held) & ~parked & 2) -> park(2) }
  :: d_step { parks > 0 && ((batches | held) & ~parked & 4) -> park(4) }
  :: d_step { retries > 0 && parked -> printf("an operator retries event {%d}\n", parked);
       retries--; pastLimit = 0; parked = 0; hold() }
  :: d_step { discards > 0 && parked -> printf("an operator discards event {%d}\n", parked);
       discards--; arrived = arrived | parked; held = held & ~parked; pastLimit = 0; parked = 0;
       if :: held == 0 -> isHeld = false :: else fi }
  :: d_step { crashes > 0 -> crash(0) }
  :: d_step { crashes > 0 -> crash(1) }
  :: d_step { strays > 0 && committed < events ->
       strays--; tally(strayWriter);
       printf("event {%d} is committed, and nobody waits for it\n", one) }
  :: d_step { strays > 0 -> strays--; printf("a write that nobody waits for is rolled back\n") }
  :: d_step { STRAY_RESULTS ->
       printf("results that nobody waits for are written: confirmed {%d}, to retry {%d}, to hold {%d}\n",
         strayConfirmed, strayRetried, strayHeld);
       settle(strayConfirmed, strayRetried, strayHeld, 0, holder != strayBy); endStray() }
  :: d_step { STRAY_RESULTS -> endStray() }
  od
}

init {
  d_step {
    c_code {
      without = setting("without"); events = setting("events"); writers = setting("writers");
      now.leases = setting("leases"); now.crashes = setting("crashes"); now.connections = setting("connections");
      now.nacks = setting("nacks"); now.writeFailures = setting("writeFailures");
      now.settleFailures = setting("settleFailures"); now.parks = setting("parks"); now.retries = setting("retries");
      now.discards = setting("discards"); now.bounds = setting("bounds"); now.rooms = setting("rooms");
    };
    writer[0] = 0; writer[1] = 1; writersDrawn = 2; ready[0] = true; ready[1] = true;
    relayEpoch[0] = 99; relayEpoch[1] = 99; known[0] = 99; known[1] = 99
  }
  atomic { run Replica(0); run Replica(1); run Rounds(0); run Rounds(1); run World() }
}

/* Always again, something waits. */
never {
look:
  do
  :: !DRAINED -> goto accept
  :: true
  od;
accept:
  goto look
}
