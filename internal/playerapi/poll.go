package playerapi

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
)

// pollEventsMax bounds one answer.
const pollEventsMax = 256

// pollMargin is how long before a silent player counts as gone a poll ends, at most: so long the next one may take to come.
const pollMargin = 5 * time.Second

// pollMost is the longest that a poll waits for a player who counts as gone after so long.
func pollMost(deadAfter time.Duration) time.Duration { return deadAfter - min(pollMargin, deadAfter/2) }

// poll is the event stream for clients that cannot keep one open. The player counts as online meanwhile.
func (d *Door) poll(ctx context.Context, by *cell.Caller, body *PollRequest) (*PollAnswer, error) {
	if err := d.gate.refuse(); err != nil {
		return nil, err
	}
	cmd := cell.PollEvents{Player: by.Player, Session: by.Session}
	if err := d.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	wait := min(time.Duration(body.WaitMS)*time.Millisecond, pollMost(d.settings().Sessions.DeadAfter))
	if wait <= 0 {
		return d.pollNow(ctx, by.Player, body.AfterSeq)
	}
	news := make(chan struct{}, 1)
	d.streams.listen(by.Player, news)
	defer d.streams.unlisten(by.Player, news)
	sentAway := d.gate.closing()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		answer, err := d.pollNow(ctx, by.Player, body.AfterSeq)
		if err != nil || len(answer.Events) > 0 {
			return answer, err
		}
		select {
		case <-news:
			continue
		case <-timeout.C:
		case <-sentAway:
		case <-d.streams.ctx.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return answer, nil
	}
}

func (d *Door) pollNow(ctx context.Context, player string, after uint64) (*PollAnswer, error) {
	stand, err := d.stand(ctx, player) // before the events: the answer's seq is never ahead of them
	if err != nil {
		return nil, err
	}
	n, err := d.since(ctx, player, after, false)
	if err != nil {
		return nil, err
	}
	answer := &PollAnswer{Events: []Event{}, HeadSeq: n.head, Resume: resumeReplay, Flow: stand}
	if n.snapshot != nil {
		answer.Resume = resumeSnapshot
		answer.Events = append(answer.Events, Event(event(n.snapshot.Seq, d.syncTail(n.snapshot, n.commit))))
	}
	for i := range n.events[:min(len(n.events), pollEventsMax)] {
		answer.Events = append(answer.Events, Event(event(n.events[i].Seq, d.eventTail(&n.events[i].Told, player))))
	}
	return answer, nil
}

func (x *streams) listen(player string, news chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.polls[player] = append(x.polls[player], news)
}

func (x *streams) unlisten(player string, news chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	left := slices.DeleteFunc(x.polls[player], func(c chan struct{}) bool { return c == news })
	if len(left) == 0 {
		delete(x.polls, player)
	} else {
		x.polls[player] = left
	}
}
