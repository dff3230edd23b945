package playerhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/webhook"
)

// answerMax bounds what is read of an answer.
const answerMax = 256 << 10

// receiver is one URL that answers questions.
type receiver struct {
	url     string
	key     string
	slots   chan struct{} // as many as may wait for it at once
	client  *http.Client
	circuit circuit
	log     *slog.Logger
	now     func() time.Time
}

func newReceiver(to string, concurrency int, key string, log *slog.Logger, now func() time.Time) *receiver {
	return &receiver{
		url: to, key: key, slots: make(chan struct{}, concurrency), client: webhook.NewClient(concurrency), log: log, now: now,
		circuit: circuit{now: now},
	}
}

// message is a question as it is sent. A repeat by the transport, on a connection that broke, has the same id.
type message struct {
	Hook   Name   `json:"hook"`
	ID     string `json:"id"`
	SentAt string `json:"sent_at"`
	Data   any    `json:"data"`
}

var (
	errCircuitOpen = errors.New("its receiver has failed again and again and is not asked now")
	errCrowded     = errors.New("too many questions wait for its receiver")
)

// ask sends a question and lets read judge the answer.
func (r *receiver) ask(ctx context.Context, n Name, question any, read func([]byte) error) error {
	if !r.circuit.closed() {
		return errCircuitOpen
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		r.circuit.gaveUp()
		return errCrowded
	}
	defer func() { <-r.slots }()
	body, err := r.post(ctx, n, question)
	if err == nil {
		err = read(body)
	}
	switch {
	case err == nil:
		if r.circuit.succeeded() {
			r.log.Info("a receiver of hooks is back", "url", webhook.PlainURL(r.url))
		}
	case errors.Is(ctx.Err(), context.Canceled): // the player's client has gone, which says nothing about the receiver
		r.circuit.gaveUp()
	default:
		if pause, opened := r.circuit.failed(); opened {
			r.log.Warn("a receiver of hooks does not answer; it is not asked for a while", "url", webhook.PlainURL(r.url), "hook", n, "pause", pause, "err", err)
		} else {
			r.log.Debug("a hook was not answered", "url", webhook.PlainURL(r.url), "hook", n, "err", err)
		}
	}
	return err
}

func (r *receiver) post(ctx context.Context, n Name, question any) ([]byte, error) {
	id, now := uuid.NewString(), r.now()
	body, err := json.Marshal(message{n, id, now.UTC().Format("2006-01-02T15:04:05.000Z"), question})
	if err != nil {
		return nil, err
	}
	response, err := webhook.Post(ctx, r.client, now, &webhook.Message{URL: r.url, Key: r.key, Body: body, Header: http.Header{
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
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answered %s, want 200", response.Status)
	case len(answered) > answerMax:
		return nil, fmt.Errorf("its answer is longer than %d bytes", answerMax)
	}
	return answered, nil
}
