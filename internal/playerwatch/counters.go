package playerwatch

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
)

// counted are the events to count.
var counted = kernel.Kinds(new(playerflow.FlowCommitted), new(playerflow.MembershipChanged), new(playerflow.MembershipEnded), new(playerflow.GameInstanceChanged), new(playerflow.PlayerChanged))

// counters count committed events. They begin at 0 at every start, as Prometheus expects. They omit events in a gap.
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
	c := &counters{
		commits:     counter("commits_total", "Commits that changed keys of players, by the call or deadline that caused them.", "cause"),
		moved:       prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_flow_key_changes_total", Help: "Players whose keys commits changed."}),
		connections: counter("game_connections_total", "What happened to players' connections to their games.", "event"),
		ended:       counter("memberships_ended_total", "Players who left games, by reason.", "reason"),
		allocation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_flow_allocation_seconds", Help: "Time from the match, or the studio's call, to a host that takes players.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"queue"}),
		failed:    counter("allocations_failed_total", "Games that got no host.", "queue", "reason"),
		penalties: counter("penalties_total", "Offences that moved a player up a scale.", "kind"),
	}
	for _, event := range []string{"lost", "reconnect_begun", "reconnected", "reservation_expired", "taken_over", "reconnect_expired"} {
		c.connections.WithLabelValues(event)
	}
	for k := flow.Dodge; k <= flow.ByOperator; k++ {
		c.penalties.WithLabelValues(k.String())
	}
	return c
}

func (c *counters) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.commits, c.moved, c.connections, c.ended, c.allocation, c.failed, c.penalties}
}

// follow counts the events of one journal entry.
func (c *counters) follow(committed engine.Committed) {
	for _, event := range committed.Events {
		switch e := event.Event.(type) {
		case *playerflow.FlowCommitted:
			c.commits.WithLabelValues(e.Cause).Inc()
			c.moved.Add(float64(len(e.Players)))
		case *playerflow.MembershipChanged:
			was, _ := event.Before.(flow.Membership)
			if name := transition(&was, &e.Membership); name != "" {
				c.connections.WithLabelValues(name).Inc()
			}
		case *playerflow.MembershipEnded:
			c.membershipEnded(e)
		case *playerflow.GameInstanceChanged:
			was, _ := event.Before.(flow.InstanceStatus)
			c.instanceChanged(committed.At, was, &e.Instance)
		case *playerflow.PlayerChanged:
			was, _ := event.Before.([]flow.Penalty)
			c.penalised(was, e.Penalties)
		}
	}
}

func (c *counters) membershipEnded(e *playerflow.MembershipEnded) {
	reason := flow.NoReason
	if e.LastGame != nil {
		reason = e.LastGame.Membership
	}
	c.ended.WithLabelValues(reason.String()).Inc()
	if reason == flow.ReconnectExpired {
		c.connections.WithLabelValues("reconnect_expired").Inc()
	}
}

func (c *counters) instanceChanged(at domain.Time, was flow.InstanceStatus, x *flow.Instance) {
	switch {
	case was == flow.InstancePending && x.Status == flow.InstanceActive:
		c.allocation.WithLabelValues(x.Queue).Observe(at.Sub(x.Created).Seconds())
	case was != flow.InstanceEnded && x.Status == flow.InstanceEnded && x.EndReason == flow.AllocationFailed:
		c.failed.WithLabelValues(x.Queue, x.EndReason.String()).Inc()
	}
}

// transition returns the name of a counted change of a membership; empty for other changes.
func transition(was, is *flow.Membership) string {
	away := was.Status == flow.MemberDisconnected || was.Status == flow.MemberNoShow
	switch {
	case was.Status == flow.MemberActive && is.Status == flow.MemberDisconnected:
		return "lost"
	case away && is.Status == flow.MemberReserved:
		return "reconnect_begun"
	case was.Status == flow.MemberReserved && was.WasActive && is.Status == flow.MemberActive:
		return "reconnected"
	case was.Status == flow.MemberReserved && (is.Status == flow.MemberDisconnected || is.Status == flow.MemberNoShow):
		return "reservation_expired"
	case was.Status == flow.MemberActive && is.Status == flow.MemberActive && !was.Next.IsZero() && is.Session == was.Next:
		return "taken_over" // by another device
	}
	return ""
}

// penalised counts new penalties, and those that began again.
func (c *counters) penalised(was, is []flow.Penalty) {
	for _, x := range is {
		i := slices.IndexFunc(was, func(y flow.Penalty) bool { return y.Kind == x.Kind })
		if i < 0 || was[i].Since != x.Since {
			c.penalties.WithLabelValues(x.Kind.String()).Inc()
		}
	}
}
