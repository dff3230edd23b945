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
	begun := cell.PollEvents{Player: by.Player, Session: by.Session, After: &body.AfterSeq}
	if err := d.engine.Do(ctx, &begun); err != nil {
		return nil, err
	}
	wait := min(time.Duration(body.WaitMS)*time.Millisecond, pollMost(d.settings().Sessions.DeadAfter))
	if wait <= 0 || begun.Sync != 0 {
		return d.pollNow(ctx, &begun)
	}
	news := make(chan struct{}, 1)
	d.streams.listen(by.Player, news)
	defer d.streams.unlisten(by.Player, news)
	sentAway := d.gate.closing()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		answer, err := d.pollNow(ctx, &begun)
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

// pollNow is what there is for a poll that has begun.
func (d *Door) pollNow(ctx context.Context, begun *cell.PollEvents) (*PollAnswer, error) {
	stand, err := d.stand(ctx, begun.Player) // before the events: the answer's seq is never ahead of them
	if err != nil {
		return nil, err
	}
	answer := &PollAnswer{Events: []Event{}, Resume: resumeReplay, Flow: stand}
	after := *begun.After
	if begun.Sync != 0 {
		answer.Resume, after = resumeSnapshot, begun.Sync-1
	}
	missed, head, ok, err := d.since(ctx, begun.Player, after)
	switch {
	case err != nil:
		return nil, err
	case !ok: // so much has happened since the poll began that it is not all there any more
		again := cell.PollEvents{Player: begun.Player, Session: begun.Session, After: &after}
		if err := d.engine.Do(ctx, &again); err != nil {
			return nil, err
		}
		return d.pollNow(ctx, &again)
	}
	answer.HeadSeq = head
	for i := range missed[:min(len(missed), pollEventsMax)] {
		x := &missed[i]
		answer.Events = append(answer.Events, Event(event(x.Seq, d.eventTail(x.Seq, &x.Told, begun.Player))))
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
