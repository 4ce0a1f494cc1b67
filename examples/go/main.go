// Keeps the history of all jobs in Postgres, from the events that Tallyhook publishes. Each event takes effect once, and those
// of one job in their order: whatever happens to the connection, the broker, the database or this program.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/lib/pq"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	exchange    = "conversion.events"
	binding     = "job.#"
	prefetch    = 50 // events that the broker sends ahead; they are handled one after the other
	attempts    = 4  // at an event whose handling fails; then it goes to the dead-letter queue
	firstWait   = 500 * time.Millisecond
	longestWait = 10 * time.Second
	workLimit   = 30 * time.Second // for one event
	// happened_at as sent: it may have more digits than a timestamptz takes.
	tables = `
		create table if not exists handled_events (id text primary key, handled_at timestamptz not null default now());
		create table if not exists job_history (
			position bigserial primary key, source text not null, job_id text not null, status text not null,
			progress int, cost_cents bigint, happened_at text not null)`
	completed = "conversion.job.completed"
)

var types = map[string]bool{completed: true, "conversion.job.failed": true, "conversion.job.progress": true}

var errDatabaseAway = errors.New("the database is away")

type event struct {
	id, source, subject, time, kind, dataSchema, status string
	progress, costCents                                 *int64 // the costs of a completed job
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	for _, name := range []string{"AMQP_URL", "DATABASE_URL", "QUEUE"} {
		if os.Getenv(name) == "" {
			log.Fatalf("%s is not set", name)
		}
	}
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for failures := 0; ctx.Err() == nil; failures++ {
		started := time.Now()
		if err := consume(ctx, db, os.Getenv("AMQP_URL"), os.Getenv("QUEUE")); err != nil {
			log.Printf("connecting again, since %v", err)
		}
		if time.Since(started) > longestWait {
			failures = 0
		}
		pause(ctx, failures)
	}
	log.Print("stopped")
}

// consume handles events until ctx is done or the connection is lost. What is not acknowledged then comes again.
func consume(ctx context.Context, db *sql.DB, url, queue string) error {
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return err
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := declare(ch, queue); err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	log.Printf("waiting for events in %s", queue)
	for {
		select {
		case <-ctx.Done():
			// Not ch.Cancel: a second consumer would then start before the events that this one still holds are back.
			return ch.Close()
		case reason := <-closed:
			return fmt.Errorf("the connection was lost: %v", reason)
		case delivery, ok := <-deliveries:
			if !ok {
				return errors.New("the broker ended the consumer")
			}
			if err := settle(ctx, db, delivery); err != nil {
				return err
			}
		}
	}
}

func declare(ch *amqp.Channel, queue string) error {
	dead := queue + ".dead"
	if err := ch.ExchangeDeclare(dead, "fanout", true, false, false, false, nil); err != nil {
		return err
	}
	if _, err := ch.QueueDeclare(dead, true, false, false, false, amqp.Table{
		"x-queue-type":     "quorum",
		"x-delivery-limit": 1_000_000,
	}); err != nil {
		return err
	}
	if err := ch.QueueBind(dead, "", dead, false, nil); err != nil {
		return err
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{
		"x-queue-type":             "quorum",
		"x-single-active-consumer": true, // a second program waits until the first is gone: so the order holds
		"x-delivery-limit":         20,   // for an event that ends this program; a lost connection counts, too
		"x-dead-letter-exchange":   dead,
		"x-dead-letter-strategy":   "at-least-once",
		"x-overflow":               "reject-publish", // at-least-once asks for it
	}); err != nil {
		return err
	}
	if err := ch.QueueBind(queue, binding, exchange, false, nil); err != nil {
		return err
	}
	return ch.Qos(prefetch, 0, false)
}

// settle acknowledges an event after its effect is committed. It never requeues one: that would change the order.
func settle(ctx context.Context, db *sql.DB, delivery amqp.Delivery) error {
	e, err := parse(delivery.Body)
	if err != nil {
		log.Printf("rejected, since it is no event: %v", err)
		return delivery.Reject(false)
	}
	if !e.isKnown() {
		return delivery.Ack(false)
	}
	for failures, waits := 0, 0; ctx.Err() == nil; waits++ {
		err := handle(db, e)
		if err == nil {
			return delivery.Ack(false)
		}
		log.Printf("%s: %v", e.id, err)
		if !errors.Is(err, errDatabaseAway) { // that is not the event's fault
			failures++
		}
		if failures == attempts {
			return delivery.Reject(false) // to the dead-letter queue
		}
		pause(ctx, waits)
	}
	return nil
}

// parse reads the data, too, if the event is known.
func parse(body []byte) (event, error) {
	var e event
	var data json.RawMessage
	err := read(body, map[string]any{"id": &e.id, "source": &e.source, "subject": &e.subject, "time": &e.time,
		"type": &e.kind, "dataschema": &e.dataSchema, "data": &data})
	if err != nil || !e.isKnown() {
		return e, err
	}
	fields := map[string]any{"status": &e.status, "progress_percentage": &e.progress}
	if e.kind == completed {
		fields["cost_cents"] = &e.costCents
	}
	return e, read(data, fields)
}

// isKnown is false for new types, and for another version of the same.
func (e event) isKnown() bool {
	return types[e.kind] && strings.HasSuffix(e.dataSchema, ":1")
}

// read takes these fields of a JSON object. Not into a struct: encoding/json would take an unknown "Status" for "status".
func read(object []byte, fields map[string]any) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(object, &values); err != nil {
		return err
	}
	for name, field := range fields {
		if err := json.Unmarshal(values[name], field); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// handle commits the effect and the event's id in one transaction, so that a copy has no effect.
func handle(db *sql.DB, e event) error {
	ctx, cancel := context.WithTimeout(context.Background(), workLimit) // a stop lets it end
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: %v", errDatabaseAway, err)
	}
	defer tx.Rollback() // does nothing after the commit
	inserted, err := tx.ExecContext(ctx, "insert into handled_events (id) values ($1) on conflict do nothing", e.id)
	if err != nil {
		return err
	}
	if count, err := inserted.RowsAffected(); err != nil || count == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into job_history (source, job_id, status, progress, cost_cents, happened_at)
		values ($1, $2, $3, $4, $5, $6)`, e.source, e.subject, e.status, e.progress, e.costCents, e.time)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// pause waits twice as long as the time before, up to longestWait, or until ctx is done.
func pause(ctx context.Context, waits int) {
	wait := longestWait
	if waits < 5 {
		wait = firstWait << waits
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}
