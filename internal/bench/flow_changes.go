package bench

import (
	"context"
	"fmt"
	"time"
)

// pairSteps has the steps of the two members of a party, in turn: they become ready and not ready, and sometimes search together
// until one of them stops. Each step changes the flow and sends an event to both.
var pairSteps = func() (steps []pairStep) {
	const leader, friend = 0, 1
	ready, unready := []byte(`{"ready":true}`), []byte(`{"ready":false}`)
	for range 5 {
		steps = append(steps, pairStep{friend, "player/Party.SetReady", ready}, pairStep{leader, "player/Party.SetReady", ready},
			pairStep{friend, "player/Party.SetReady", unready}, pairStep{leader, "player/Party.SetReady", unready})
	}
	return append(steps, pairStep{friend, "player/Party.SetReady", ready}, pairStep{leader, "player/Party.SetReady", ready},
		pairStep{leader, "player/Matchmaking.EnterMatchmaking", []byte(`{"queue":"` + flowQueue + `"}`)},
		pairStep{friend, "player/Matchmaking.LeaveMatchmaking", nil}, // the friend is not ready then
		pairStep{leader, "player/Party.SetReady", unready})
}()

type pairStep struct {
	who  int
	call string
	body []byte
}

// flowChangers is the number of connections that make the changes.
const flowChangers = 64

// flowChanges measures the time of an event from the commit to its client, while all streams are attached and players change their
// flow at a fixed rate.
func (b *bench) flowChanges(ctx context.Context, s *server, a *audience) error {
	conns, err := dialAll(ctx, s.addr, flowChangers)
	if err != nil {
		return err
	}
	defer conns.close()
	pairs := len(a.players) / 2
	steps := make([]int, pairs)
	turns := make([]int, flowChangers) // each worker has its own pairs, so that the steps of each are in order
	step := func(c *flowConn, pair int) error {
		x := &pairSteps[steps[pair]%len(pairSteps)]
		m := a.players[2*pair+x.who]
		answer, err := c.must(x.call, m.token, x.body)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		m.answered = seqOf(answer)
		steps[pair]++
		return nil
	}
	l := load{workers: min(flowChangers, pairs), rate: b.sizes.flowRate, warm: b.sizes.flowWarm, measure: b.options.Measure}
	var m *measured
	err = b.profileWhile(ctx, s, "flow-changes", func() (err error) {
		for after, on := range map[time.Duration]bool{l.warm: true, l.warm + l.measure: false} {
			defer time.AfterFunc(after, func() { a.measuring.Store(on) }).Stop()
		}
		m, err = l.run(ctx, s, func(worker int) error {
			own := (pairs - worker + l.workers - 1) / l.workers
			pair := worker + turns[worker]%own*l.workers
			turns[worker]++
			return step(conns[worker], pair)
		})
		return err
	})
	if err != nil {
		return err
	}
	if err := inParallel(l.workers, l.workers, func(worker int) error { // all searches end
		for pair := worker; pair < pairs; pair += l.workers {
			for pairSteps[max(steps[pair]-1, 0)%len(pairSteps)].call == "player/Matchmaking.EnterMatchmaking" {
				if err := step(conns[worker], pair); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := a.heardAll(ctx); err != nil {
		return err
	}
	if err := a.check(len(a.players)); err != nil {
		return err
	}
	var lags histogram
	for i := range a.lags {
		lags.merge(&a.lags[i].histogram)
	}
	frames := float64(a.frames.Load()) / m.took.Seconds()
	b.progress("  flow changes: %s", m)
	b.progress("  commit to frame: p50 %s, p99 %s, p99.9 %s; %.0f frames a second", milliseconds(lags.quantile(0.5)), milliseconds(lags.quantile(0.99)), milliseconds(lags.quantile(0.999)), frames)
	b.table.addLoad("flow changes, from the call to the answer", "changes", 1, m, 0)
	b.table.addFact(fmt.Sprintf("%s flow changes a second, %s streams attached, %s frames a second: from the commit to the frame at the client, p99",
		thousands(int64(m.perSecond())), thousands(int64(len(a.players))), thousands(int64(frames))), "100 ms",
		"%s (p50 %s)", milliseconds(lags.quantile(0.99)), milliseconds(lags.quantile(0.5)))
	return nil
}
