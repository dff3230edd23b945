package service

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/support"
)

// supportBundle collects this node's data for a support bundle, one bundle at a time. The audit log gets an entry for the origin in the context; the
// door counts refusals.
func (x *Service) supportBundle(ctx context.Context, processor time.Duration) (*support.Parts, error) {
	if processor < 0 || processor > support.CPUMax {
		return nil, domain.Refuse(domain.Invalid, "processor profile: %s, want 0s to %s", processor, support.CPUMax)
	}
	if !x.bundling.TryLock() {
		return nil, domain.Refuse(domain.Conflict, "another support bundle is being made")
	}
	defer x.bundling.Unlock()
	p := support.Gather(audit.Without(ctx), &support.Source{
		Version: x.version, Settings: x.reload.current.Get(), Dir: x.settings.Data, Log: x.recent, Metrics: x.metrics.Gatherer(), Series: x.kept,
		Overview: func(ctx context.Context) (any, error) { return x.operators.Overview(ctx) }, Facts: x.facts, Now: x.engine.Now,
	}, processor)
	x.log.Info("support bundle made", "parts", len(p.All))
	x.audit.Record(ctx, "support bundle", x.nodeName())
	return p, nil
}

// nodeName returns the address by which the other nodes of the cluster know this one; empty for a single node.
func (x *Service) nodeName() string {
	if x.node == nil {
		return ""
	}
	return x.node.Requests().Self()
}

// facts returns statistics of the state and its stores.
func (x *Service) facts() map[string]any {
	inForce, known := x.engine.Level()
	waiting, most := x.engine.Waiting()
	facts := map[string]any{
		"entry": x.engine.Applied(), "level": inForce, "levelKnown": known, "commandsWaiting": waiting, "commandsWaitingMax": most, "installation": x.installation(),
		"archiveDamaged": x.archive.Damage(), "publicURL": x.publicURL, "node": x.nodeName(),
	}
	if err := x.Err(); err != nil {
		facts["failure"] = err.Error()
	}
	if err := x.Ready(); err != nil {
		facts["notReady"] = err.Error()
	}
	if free, ok := x.archive.FreeSpace(); ok {
		facts["freeBytes"] = free
	}
	return facts
}
