package playerhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/webhook"
)

// answerMax bounds the size of an answer.
const answerMax = 256 << 10

// receiver is a URL that answers requests.
type receiver struct {
	url    string
	keys   func() []string // that sign
	slots  chan struct{}   // one slot for each request that may wait for it
	client *http.Client
	now    func() time.Time
}

func newReceiver(to string, concurrency int, keys func() []string) *receiver {
	return &receiver{url: to, keys: keys, slots: make(chan struct{}, concurrency), client: webhook.NewClient(concurrency), now: time.Now}
}

// message is a request in JSON. If the transport repeats it because a connection broke, the repeat has the same id.
type message struct {
	Hook   Name   `json:"hook"`
	ID     string `json:"id"`
	SentAt string `json:"sent_at"`
	Data   any    `json:"data"`
}

var (
	errCircuitOpen = errors.New("its receiver has failed repeatedly; requests are paused")
	errCrowded     = errors.New("too many requests wait for its receiver")
)

// unusable is an invalid answer: the receiver works, and its answer cannot be used.
type unusable struct{ error }

func (e unusable) Unwrap() error { return e.error }

func isUnusable(err error) bool {
	_, ok := errors.AsType[unusable](err)
	return ok
}

// ask sends a request, and lets read check the answer.
func (h *hook) ask(ctx context.Context, n Name, q question, read func([]byte) error) error {
	player := askerOf(q)
	if !h.circuit.closed(player) {
		return errCircuitOpen
	}
	select {
	case h.receiver.slots <- struct{}{}:
	case <-ctx.Done():
		h.circuit.gaveUp(player)
		return errCrowded
	}
	defer func() { <-h.receiver.slots }()
	traced, span := tracing.Child(ctx, "hook", trace.SpanKindClient)
	span.Set("muster.hook", string(n))
	body, err := h.receiver.post(traced, n, q)
	span.EndWith(err)
	if err == nil {
		if err = read(body); err != nil {
			err = unusable{err}
		}
	}
	h.note(ctx, n, player, err)
	return err
}

// note reports the result of a request to the circuit and to the log.
func (h *hook) note(ctx context.Context, n Name, player string, err error) {
	log := h.log.With("hook", n, "url", webhook.PlainURL(h.receiver.url))
	switch {
	case err == nil || isUnusable(err):
		if h.circuit.answered() {
			log.Info("the receiver of a hook answers again")
		}
	case errors.Is(ctx.Err(), context.Canceled): // the player's client has gone, which proves nothing about the receiver
		h.circuit.gaveUp(player)
		return
	default:
		if pause, opened := h.circuit.failed(player); opened {
			log.Warn("the receiver of a hook does not answer: no requests are sent during the pause", "pause", pause, "error", err)
			return
		}
	}
	if err == nil {
		return
	}
	if write, _ := h.told.Note(h.circuit.now()); write {
		log.Warn("a hook returned no usable answer: its on_timeout decides", "error", err, "unlogged_for", complainEvery)
	} else {
		log.Debug("a hook returned no usable answer", "error", err)
	}
}

func (r *receiver) post(ctx context.Context, n Name, q question) ([]byte, error) {
	id, now := uuid.NewString(), r.now()
	body, err := json.Marshal(message{n, id, now.UTC().Format("2006-01-02T15:04:05.000Z"), q})
	if err != nil {
		return nil, err
	}
	response, err := webhook.Post(ctx, r.client, now, &webhook.Message{URL: r.url, Keys: r.keys(), Body: body, Header: http.Header{
		"Content-Type":    {"application/json"},
		"Idempotency-Key": {id}, // lets the transport repeat it when a kept connection turns out to be closed
	}})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answered, err := io.ReadAll(io.LimitReader(response.Body, answerMax+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("it answered %s, want 200", response.Status)
	case response.StatusCode != http.StatusOK:
		return nil, unusable{fmt.Errorf("it answered %s, want 200", response.Status)}
	case len(answered) > answerMax:
		return nil, unusable{fmt.Errorf("its answer is longer than %d bytes", answerMax)}
	}
	return answered, nil
}
