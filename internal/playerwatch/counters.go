package playerwatch

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/engine"
)

// counted are the events that are counted.
var counted = cell.Kinds(cell.KindFlowCommitted, cell.KindMembershipChanged, cell.KindMembershipEnded, cell.KindGameInstanceChanged, cell.KindPlayerChanged)

// counters count committed events. They begin at 0 with every start, as Prometheus expects.
type counters struct {
	commits     *prometheus.CounterVec
	moved       prometheus.Counter
	connections *prometheus.CounterVec
	ended       *prometheus.CounterVec
	allocation  *prometheus.HistogramVec
	failed      *prometheus.CounterVec
	penalties   *prometheus.CounterVec
}

func newCounters() *counters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_flow_" + name, Help: help}, labels)
	}
	return &counters{
		commits:     counter("commits_total", "Commits that changed keys of players, by the call or deadline that caused them.", "cause"),
		moved:       prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_flow_key_changes_total", Help: "Players whose keys commits changed."}),
		connections: counter("game_connections_total", "What happened to players' connections to their games.", "event"),
		ended:       counter("memberships_ended_total", "Players who left games, by reason.", "reason"),
		allocation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_flow_allocation_seconds", Help: "From the match, or the studio's call, to a host that takes players.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"queue"}),
		failed:    counter("allocations_failed_total", "Games that got no host.", "queue", "reason"),
		penalties: counter("penalties_total", "Offences that moved a player up a scale.", "kind"),
	}
}

func (c *counters) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.commits, c.moved, c.connections, c.ended, c.allocation, c.failed, c.penalties}
}

var transitions = map[cell.Transition]string{
	cell.ConnectionLost: "lost", cell.ReconnectBegun: "reconnect_begun", cell.ReconnectDone: "reconnected",
	cell.ReservationsExpired: "reservation_expired", cell.TakenOver: "taken_over",
}

// follow counts what one journal entry says.
func (c *counters) follow(committed engine.Committed) {
	for _, event := range committed.Events {
		switch e := event.(type) {
		case *cell.FlowCommitted:
			c.commits.WithLabelValues(e.Cause).Inc()
			c.moved.Add(float64(len(e.Players)))
		case *cell.MembershipChanged:
			if name := transitions[e.Transition()]; name != "" {
				c.connections.WithLabelValues(name).Inc()
			}
		case *cell.MembershipEnded:
			c.membershipEnded(e)
		case *cell.GameInstanceChanged:
			c.instanceChanged(&committed, e)
		case *cell.PlayerChanged:
			for _, kind := range e.Penalised() {
				c.penalties.WithLabelValues(kind.String()).Inc()
			}
		}
	}
}

func (c *counters) membershipEnded(e *cell.MembershipEnded) {
	reason := flow.NoReason
	if e.LastGame != nil {
		reason = e.LastGame.Membership
	}
	c.ended.WithLabelValues(reason.String()).Inc()
	if reason == flow.ReconnectExpired {
		c.connections.WithLabelValues("reconnect_expired").Inc()
	}
}

func (c *counters) instanceChanged(committed *engine.Committed, e *cell.GameInstanceChanged) {
	x := &e.Instance
	switch {
	case e.Was() == flow.InstancePending && x.Status == flow.InstanceActive:
		c.allocation.WithLabelValues(x.Queue).Observe(committed.At.Sub(x.Created).Seconds())
	case e.Was() != flow.InstanceEnded && x.Status == flow.InstanceEnded && x.EndReason == flow.AllocationFailed:
		c.failed.WithLabelValues(x.Queue, x.EndReason.String()).Inc()
	}
}
