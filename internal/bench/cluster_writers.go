package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// reserver is a client of one node that reserves seats in game sessions: each call that succeeds is one durable change.
type reserver struct {
	games  []localGame
	node   *server
	number int // of this client
	count  int
	conn   *conn
}

func (r *reserver) close() {
	if r.conn != nil {
		r.conn.close()
		r.conn = nil
	}
}

// reserveWait limits a call. It outlasts a change of the leader.
const reserveWait = 30 * time.Second

// reserve makes one call. After an error, the next call uses a new connection.
func (r *reserver) reserve(ctx context.Context) (err error) {
	if r.conn == nil {
		if r.conn, err = dial(ctx, r.node.addr, awsJSON, r.node.key); err != nil {
			return err
		}
	}
	if err = r.conn.tcp.SetDeadline(time.Now().Add(reserveWait)); err == nil {
		r.count++
		game := r.games[rand.IntN(len(r.games))]
		_, err = r.conn.call("CreatePlayerSession", member{name: "GameSessionId", text: arnOf(game)},
			member{name: "PlayerId", text: fmt.Sprintf("writer-%d-%d", r.number, r.count)})
	}
	if err != nil {
		r.close()
	}
	return err
}

func arnOf(g localGame) string { return g.id.ARN(region) }

// writers are reservers at several nodes. They call on a schedule and record the times of their answers.
type writers struct {
	each []*reserver

	mu     sync.Mutex
	acks   []time.Time
	failed []error
	end    context.CancelFunc
	done   chan struct{}
	err    error
}

var writerNumbers int // so that no two writers of a run use the same players

// writeAt starts writers, n at each node, that together make rate calls per second until stop.
func writeAt(ctx context.Context, at []*clusterNode, games []localGame, n int, rate float64) *writers {
	w := &writers{done: make(chan struct{})}
	for i := range n * len(at) {
		writerNumbers++
		w.each = append(w.each, &reserver{games: games, node: at[i%len(at)].server, number: writerNumbers})
	}
	ctx, w.end = context.WithCancel(ctx)
	go func() {
		defer close(w.done)
		// ctx ends the load; the time only has to be long enough.
		_, w.err = load{workers: len(w.each), rate: rate, measure: 24 * time.Hour}.run(ctx, nil, func(i int) error {
			err := w.each[i].reserve(ctx)
			w.mu.Lock()
			defer w.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				w.failed = append(w.failed, err)
			} else if err == nil {
				w.acks = append(w.acks, time.Now())
			}
			return nil
		})
	}()
	return w
}

// stop ends the writers and returns the errors of their calls.
func (w *writers) stop() []error {
	w.end()
	<-w.done
	for _, r := range w.each {
		r.close()
	}
	return w.failed
}

// longestGap returns the longest time between two answers to any writer, from an instant until now.
func (w *writers) longestGap(from time.Time) (gap time.Duration, answers int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := from
	for _, at := range w.acks {
		if at.Before(from) {
			continue
		}
		gap, last, answers = max(gap, at.Sub(last)), at, answers+1
	}
	return max(gap, time.Since(last)), answers
}

func failures(failed []error) string {
	if len(failed) == 0 {
		return "0"
	}
	return strconv.Itoa(len(failed)) + ", the first: " + failed[0].Error()
}
