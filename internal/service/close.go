package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/listen"
)

// drainPorts lets the HTTP clients of a cluster node move to other nodes without losing a request. A single machine does not wait for them: they have
// no other node, and would have to do without the service for longer. Nor does a node that has failed.
func (x *Service) drainPorts(ctx context.Context) {
	if x.node != nil && x.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, drainNext)
		defer cancel()
		x.eachPort(func(port *listen.Server) { port.Drain(ctx) })
	}
}

// eachPort calls do for all ports at the same time, and returns when all calls have.
func (x *Service) eachPort(do func(*listen.Server)) {
	var all sync.WaitGroup
	for _, port := range append(x.beside, x.port) {
		if port != nil {
			all.Go(func() { do(port) })
		}
	}
	all.Wait()
}

// close closes every open part, each before the parts that it needs.
func (x *Service) close(ctx context.Context) error {
	var errs []error
	if x.room != nil { // a write that waits for space holds up requests and the parts that wait for it
		waiting := time.AfterFunc(drain, x.stopWaiting)
		defer waiting.Stop()
	}
	if x.stopLinks != nil {
		x.stopLinks()
	}
	if x.acme != nil {
		x.acme.Close()
	}
	if x.local != nil {
		errs = append(errs, x.local.Close(ctx))
	}
	if x.node != nil {
		x.node.StepDown(ctx)
	}
	if x.stopWarning != nil {
		x.stopWarning()
		x.warning.Wait()
	}
	if x.scripts != nil {
		x.scripts.Close() // event streams would keep the port from closing
	}
	if x.console != nil {
		x.console.Close() // so would these
	}
	if x.people != nil {
		x.people.Close()
	}
	if x.players != nil {
		x.players.Close()
		x.hooks.Close()
	}
	var ports sync.Mutex
	x.eachPort(func(port *listen.Server) {
		draining, cancel := context.WithTimeout(ctx, drain)
		defer cancel()
		err := port.Stop(draining)
		ports.Lock()
		defer ports.Unlock()
		errs = append(errs, err)
	})
	if x.link != nil {
		x.link.Close()
	}
	if x.agents != nil {
		x.agents.Close()
	}
	x.closeBuilds()
	x.sweeping.Wait()
	x.once.Rest()
	if x.watch != nil {
		x.watch.Close()
	}
	if x.events != nil {
		x.events.Close()
	}
	if x.games != nil {
		x.games.Close()
	}
	if x.kept != nil {
		errs = append(errs, x.kept.Close())
	}
	if x.room != nil {
		x.room.stopWaiting()
	}
	x.audit.Close()
	if x.secrets != nil {
		x.secrets.Close()
	}
	if x.keys != nil {
		x.keys.Close()
	}
	if x.node != nil {
		x.node.Leave(ctx)
	}
	if x.engine != nil {
		errs = append(errs, x.engine.Close())
	}
	x.endTelemetry(ctx)
	if x.room != nil {
		x.room.close()
	}
	if x.node != nil {
		errs = append(errs, x.node.Close())
	}
	if x.data != nil {
		errs = append(errs, x.data.Close())
	}
	return errors.Join(errs...)
}
