package capacity

import (
	"github.com/musterhq/muster/internal/domain"
)

// Sample holds the inputs of scaling policies for one location of a fleet at one moment. The API's documentation
// defines the metrics.
type Sample struct {
	At domain.Time

	ActiveInstances int32 // hosts with server processes that are ready
	IdleInstances   int32 // how many of these have no game session

	ActivatingGameSessions, ActiveGameSessions int32

	AvailableGameSessions             int32 // healthy server processes without a game session
	ConcurrentActivatableGameSessions int32 // how many of these may start one now
	UnhealthyProcesses                int32

	CurrentPlayerSessions, AvailablePlayerSessions int32

	QueueDepth int32   // placements whose first choice is this place
	WaitTime   float64 // how long the oldest of them has waited, in seconds
}

// Metric returns a metric by its name. It reports false if the name is unknown or the metric is a percentage of
// nothing.
func (s *Sample) Metric(name string) (value float64, ok bool) {
	switch name {
	case "ActivatingGameSessions":
		return float64(s.ActivatingGameSessions), true
	case "ActiveGameSessions":
		return float64(s.ActiveGameSessions), true
	case "ActiveInstances":
		return float64(s.ActiveInstances), true
	case "IdleInstances":
		return float64(s.IdleInstances), true
	case "PercentIdleInstances":
		return percent(s.IdleInstances, s.ActiveInstances)
	case "AvailableGameSessions":
		return float64(s.AvailableGameSessions), true
	case "ConcurrentActivatableGameSessions":
		return float64(s.ConcurrentActivatableGameSessions), true
	case "PercentAvailableGameSessions":
		return percent(s.AvailableGameSessions, s.ActiveGameSessions+s.AvailableGameSessions+s.UnhealthyProcesses)
	case "CurrentPlayerSessions":
		return float64(s.CurrentPlayerSessions), true
	case "AvailablePlayerSessions":
		return float64(s.AvailablePlayerSessions), true
	case "QueueDepth":
		return float64(s.QueueDepth), true
	case "WaitTime":
		return s.WaitTime, true
	}
	return 0, false
}

func percent(part, all int32) (float64, bool) {
	if all == 0 {
		return 0, false
	}
	return float64(part) * 100 / float64(all), true
}
