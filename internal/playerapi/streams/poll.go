package streams

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/events"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// PollRequest asks for events.
type PollRequest struct {
	AfterSeq uint64 `json:"after_seq,omitempty" doc:"The last event that the client has; 0 for none."`
	WaitMS   int64  `json:"wait_ms,omitempty" minimum:"0" maximum:"25000" doc:"How long to wait while there is none."`
}

// PollAnswer has events, in order and without a gap.
type PollAnswer struct {
	Events  []events.Event `json:"events" doc:"As on the stream. With SNAPSHOT the first is an OnSync."`
	HeadSeq uint64         `json:"head_seq"`
	Resume  string         `json:"resume" enum:"REPLAY,SNAPSHOT"`
	Flow    objects.Stand  `json:"flow"`
}

// pollEventsMax is the maximum number of events in one answer.
const pollEventsMax = 256

// pollMargin is the longest time between the end of a poll and the moment at which a silent player counts as gone: the
// client has this long to poll again.
const pollMargin = 5 * time.Second

// pollMost returns the longest wait of a poll, if a silent player counts as gone after deadAfter.
func pollMost(deadAfter time.Duration) time.Duration { return deadAfter - min(pollMargin, deadAfter/2) }

// Poll returns events to a client that cannot keep a stream open, and waits if it has none. Meanwhile the player counts as online.
func (x *Streams) Poll(ctx context.Context, by *playerflow.Caller, body *PollRequest) (*PollAnswer, error) {
	dropped := x.dropping() // before the incarnation is read, so that giving that one up ends this poll
	begun := playerflow.PollEvents{Player: by.Player, LoginSessionID: by.LoginSessionID, After: &body.AfterSeq, Node: x.Node()}
	if err := x.beginPoll(ctx, &begun); err != nil {
		return nil, err
	}
	wait := min(time.Duration(body.WaitMS)*time.Millisecond, pollMost(x.State.Settings().Sessions.DeadAfter))
	if wait <= 0 || begun.Sync != 0 {
		return x.pollNow(ctx, &begun)
	}
	news := make(chan struct{}, 1)
	x.listen(by.Player, news)
	defer x.unlisten(by.Player, news)
	sentAway := x.gate.closing()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		answer, err := x.pollNow(ctx, &begun)
		if err != nil || len(answer.Events) > 0 {
			return answer, err
		}
		select {
		case <-news:
			continue
		case <-timeout.C:
		case <-sentAway:
		case <-dropped:
		case <-x.ctx.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return answer, nil
	}
}

// beginPoll makes a player present for a poll, unless clients are kept away.
func (x *Streams) beginPoll(ctx context.Context, cmd *playerflow.PollEvents) error {
	x.polling.RLock()
	defer x.polling.RUnlock()
	if refused := x.Draining(); refused != nil {
		return refused
	}
	return x.State.Do(ctx, cmd)
}

// pollNow returns what is available for a poll that has begun.
func (x *Streams) pollNow(ctx context.Context, begun *playerflow.PollEvents) (*PollAnswer, error) {
	stand, err := x.State.Stand(ctx, begun.Player) // before the events: the answer's seq is never ahead of them
	if err != nil {
		return nil, err
	}
	answer := &PollAnswer{Events: []events.Event{}, Resume: events.ResumeReplay, Flow: stand}
	after := *begun.After
	if begun.Sync != 0 {
		answer.Resume, after = events.ResumeSnapshot, begun.Sync-1
	}
	var missed []playerflow.PlayerEvent
	var head uint64
	var ok bool
	err = x.State.Read(ctx, func(v *cell.View) error {
		if _, live := v.Login(begun.LoginSessionID); !live { // a replaced one still gets its OnSessionReplaced
			return flow.Refuse(flow.Refusal{Code: flow.SessionNotFound}, "the login session has ended")
		}
		missed, head, ok = v.EventsAfter(begun.Player, after, flow.EventsLimit)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !ok: // since the poll began, more events have come than the state keeps
		again := playerflow.PollEvents{Player: begun.Player, LoginSessionID: begun.LoginSessionID, After: &after, Node: x.Node()}
		if err := x.beginPoll(ctx, &again); err != nil {
			return nil, err
		}
		return x.pollNow(ctx, &again)
	}
	answer.HeadSeq = head
	for i := range missed[:min(len(missed), pollEventsMax)] {
		e := &missed[i]
		tail, err := x.events.Tail(ctx, e.Seq, &e.Told, begun.Player)
		if err != nil {
			return nil, err
		}
		answer.Events = append(answer.Events, events.Event(events.Whole(e.Seq, tail)))
	}
	return answer, nil
}

func (x *Streams) listen(player string, news chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.polls[player] = append(x.polls[player], news)
}

func (x *Streams) unlisten(player string, news chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	left := slices.DeleteFunc(x.polls[player], func(c chan struct{}) bool { return c == news })
	if len(left) == 0 {
		delete(x.polls, player)
	} else {
		x.polls[player] = left
	}
}
