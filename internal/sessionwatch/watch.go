// Package sessionwatch has the metrics and log lines of game sessions and server processes for operators. It counts
// committed events and logs each, up to a limit. Operators can read every line of an installation that starts a game session per minute,
// and one that starts a million per day does not fill its disk.
//
// In a cluster only the leader counts and logs events, so figures of all nodes can be added up. A refusal is counted by
// the node that received the request.
package sessionwatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
)

// Config is what a Watch needs.
type Config struct {
	Engine *engine.Engine
	Log    *slog.Logger
	Each   int           // maximum lines above level debug for each kind of event and period; 0: only summaries
	Period time.Duration // 0: a minute
}

// Watch watches events from Lead to Rest, and refusals until it is closed. It is a prometheus.Collector.
type Watch struct {
	engine   *engine.Engine
	log      *slog.Logger
	lines    *lines
	metrics  *metrics
	unfollow func() // nil while this node is not the leader
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// followed are the events of server processes, game sessions, placements and rollouts.
var followed = kernel.Kinds(new(hosting.ProcessConnected), new(hosting.ProcessLinkLost), new(hosting.ProcessActivated), new(hosting.ProcessEnded),
	new(hosting.GameSessionCreated), new(hosting.GameSessionEnded), new(hosting.PlacementEnded), new(membership.NodeLost), new(hosting.RolloutChanged))

// Start begins to watch for refusals. Close it before the engine.
func Start(c Config) *Watch {
	c.Period = cmp.Or(c.Period, time.Minute)
	ctx, stop := context.WithCancel(context.Background())
	w := &Watch{engine: c.Engine, log: c.Log, lines: newLines(c.Log, c.Each, c.Period), metrics: newMetrics(), stop: stop}
	c.Engine.OnRefusal(w.refused)
	w.running.Go(func() { w.lines.sumUp(ctx) })
	return w
}

// SetEach changes Config.Each.
func (w *Watch) SetEach(each int) { w.lines.set(each) }

// Lead begins to watch events.
func (w *Watch) Lead() { w.unfollow = w.engine.Follow(followed, w.follow) }

// Rest stops watching events.
func (w *Watch) Rest() {
	if w.unfollow != nil {
		w.unfollow()
		w.unfollow = nil
	}
}

// Close stops the watch, and summarizes the events that were not logged individually.
func (w *Watch) Close() {
	w.Rest()
	w.engine.OnRefusal(nil)
	w.stop()
	w.running.Wait()
}

// Describe implements prometheus.Collector.
func (w *Watch) Describe(to chan<- *prometheus.Desc) {
	for _, x := range w.metrics.collectors() {
		x.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (w *Watch) Collect(to chan<- prometheus.Metric) {
	for _, x := range w.metrics.collectors() {
		x.Collect(to)
	}
}

// follow counts and logs the events of one journal entry. Events in a gap are neither counted nor logged at this node.
func (w *Watch) follow(committed engine.Committed) {
	for _, event := range committed.Events {
		switch e := event.Event.(type) {
		case *hosting.ProcessConnected:
			w.connected(e)
		case *hosting.ProcessLinkLost:
			w.metrics.linksLost.Inc()
			w.lines.write(slog.LevelInfo, "server process disconnected", "", "process", e.Process.String())
		case *membership.NodeLost:
			w.nodeLost(e)
		case *hosting.RolloutChanged:
			w.rollout(&e.Rollout)
		case *hosting.ProcessActivated:
			if e.New {
				w.metrics.started.Inc()
			}
			w.lines.write(slog.LevelInfo, "server process ready", "", "process", e.Process.String(), "port", e.Port, "sdk", e.SDK)
		case *hosting.ProcessEnded:
			w.processEnded(e)
		case *hosting.GameSessionCreated:
			w.metrics.created.Inc()
			w.lines.write(slog.LevelInfo, "game session created", "", "game_session", e.ID, "process", e.Process.String(), "players_max", e.PlayersMax, "placement", e.Placement)
		case *hosting.GameSessionEnded:
			w.metrics.ended.WithLabelValues(e.Cause.String()).Inc()
			w.lines.write(slog.LevelInfo, "game session ended", e.Cause.String(), "game_session", e.ID, "reason", e.Cause.String())
		case *hosting.PlacementEnded:
			w.placementEnded(e)
		}
	}
}

func (w *Watch) nodeLost(e *membership.NodeLost) {
	if e.Links > 0 {
		w.metrics.linksLost.Add(float64(e.Links))
		w.lines.write(slog.LevelInfo, "server processes disconnected: their node of the cluster was lost", "", "processes", e.Links)
	}
}

// rollout logs each step of a rollout, and its end.
func (w *Watch) rollout(r *fleet.Rollout) {
	attributes := []any{"alias", r.Alias, "from", r.From, "to", r.To}
	switch {
	case r.Phase == fleet.RolloutMoving:
		w.lines.write(slog.LevelInfo, "rollout begins a step", "", append(attributes, "step", r.Step+1, "steps", len(r.Weights), "percent", r.Weight(), "time", r.StepTime)...)
	case r.Phase == fleet.RolloutUndone && r.TooManyFailures() != "":
		w.lines.write(slog.LevelWarn, "rollout stopped: the new fleet fails too often, and new game sessions go to the old one again", "", append(attributes, "reason", r.Why)...)
	case r.Phase == fleet.RolloutReturning:
		w.lines.write(slog.LevelInfo, "rollout is being undone: it waits for a server process of the old fleet", "", append(attributes, "reason", r.Why)...)
	case r.Phase == fleet.RolloutUndone:
		w.lines.write(slog.LevelInfo, "rollout undone: new game sessions go to the old fleet again", "", append(attributes, "reason", r.Why)...)
	default:
		w.lines.write(slog.LevelInfo, "rollout done", "", append(attributes, "reason", r.Why)...)
	}
}

func (w *Watch) connected(e *hosting.ProcessConnected) {
	if !e.New {
		w.lines.write(slog.LevelInfo, "server process reconnected", "", "process", e.Process.String(), "sdk", e.SDK)
		return
	}
	w.metrics.started.Inc()
	w.lines.write(slog.LevelInfo, "server process connected", "", "process", e.Process.String(), "sdk", e.SDK)
}

func (w *Watch) processEnded(e *hosting.ProcessEnded) {
	reason := e.Reason.String()
	w.metrics.processes.WithLabelValues(reason).Inc()
	switch e.Reason {
	case fleet.EndedNormally, fleet.EndedReplaced, fleet.EndedWithCompute:
		w.lines.write(slog.LevelInfo, "server process ended", reason, "process", e.Process.String(), "reason", reason)
	default:
		w.lines.write(slog.LevelWarn, "server process ended abnormally; muster explain process shows details", reason, "process", e.Process.String(), "reason", reason)
	}
}

func (w *Watch) placementEnded(e *hosting.PlacementEnded) {
	w.metrics.placements.WithLabelValues(e.Status.String()).Inc()
	if e.Status == placement.Fulfilled || e.Status == placement.Cancelled { // its game session has its own line, or a caller stopped it
		return
	}
	why := outcomes(e.Passed)
	w.lines.writeMore(slog.LevelInfo, "placement got no game session", e.Status.String()+" "+why, func() []any {
		return []any{"placement", e.ID, "status", e.Status.String(), "places", why, "detail", w.whyNoProcess(e.Passed)}
	})
}

// outcomes counts the obstacles of a placement at the destinations of its queue, in the words of muster explain placement.
func outcomes(passed []placement.Try) string {
	counts := map[string]int{}
	for i := range passed {
		counts[passed[i].Outcome.String()]++
	}
	var words []string
	for outcome, n := range counts {
		words = append(words, fmt.Sprintf("%s %d", outcome, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// whyNoProcess explains what the processes at the first destination without a free server process are doing.
func (w *Watch) whyNoProcess(passed []placement.Try) (why string) {
	for i := range passed {
		if x := &passed[i]; x.Outcome == placement.NoFreeProcess {
			_ = w.engine.ReadHere(context.Background(), func(v *cell.View) error { // for the log only: a stopped engine returns nothing
				why = v.WhyNoProcess(x.Fleet, x.Location)
				return nil
			})
			return why
		}
	}
	return ""
}

// refused counts and logs a game session that was not created for lack of capacity. It ignores refusals because of mistakes in a request.
func (w *Watch) refused(cmd kernel.Command, refusal *domain.Refusal) {
	create, ok := cmd.(*hosting.CreateGameSession)
	if !ok {
		return
	}
	w.metrics.refused.WithLabelValues(refusal.Reason.String()).Inc()
	if slices.Contains(lacksCapacity, refusal.Reason) {
		w.lines.write(slog.LevelInfo, "game session refused", refusal.Reason.String(), "fleet", create.Fleet, "location", create.Location,
			"reason", refusal.Reason.String(), "detail", refusal.Detail)
	}
}

var _ prometheus.Collector = (*Watch)(nil)
