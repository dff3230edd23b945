package agones

import (
	"maps"
	"slices"
	"time"
)

// State is the state of an Agones GameServer.
type State string

// States that a game can see here.
const (
	Scheduled    State = "Scheduled" // the process runs and has not reported that it is ready
	RequestReady State = "RequestReady"
	Ready        State = "Ready"
	Reserved     State = "Reserved"
	Allocated    State = "Allocated"
	Shutdown     State = "Shutdown"
	Unhealthy    State = "Unhealthy"
)

// final reports whether a state never changes.
func (s State) final() bool { return s == Shutdown || s == Unhealthy }

// Memory is the state that must outlive the agent.
type Memory struct {
	Version int64 `json:"version"` // counts the changes
	Turn    int64 `json:"turn"`    // version at the last change of the process's life
	State   State `json:"state"`
	Used    bool  `json:"used,omitzero"` // the game has called the SDK

	Labels      map[string]string  `json:"labels"`
	Annotations map[string]string  `json:"annotations"`
	Counters    map[string]Counter `json:"counters"`
	Lists       map[string]List    `json:"lists"`
	Players     List               `json:"players"`
	Health      Health             `json:"health"`

	Address       string    `json:"address,omitzero"` // at which players reach the game; known with the first game session
	DeletedAt     time.Time `json:"deletedAt,omitzero"`
	ReservedUntil time.Time `json:"reservedUntil,omitzero"` // zero: forever

	Fleet   string `json:"fleet,omitzero"` // in which the process has registered, with its compute
	Compute string `json:"compute,omitzero"`
	// Registered means that the service considers the process ready. Leaving means that the service must still learn that the process is no
	// longer ready, because its game session is over or it withdraws.
	Registered bool `json:"registered,omitzero"`
	Leaving    bool `json:"leaving,omitzero"`

	Session string   `json:"session,omitzero"` // ARN of the game session; empty: none
	Given   []string `json:"given,omitzero"`   // labels and annotations that are game properties of the latest game session
	Active  bool     `json:"active,omitzero"`  // the service knows that it is active
	// Seats are the player sessions of the players whom the game has named; empty: the player has none.
	Seats map[string]string `json:"seats,omitzero"`
}

// PlayersList is the list whose values are players, which Agones recommends instead of player tracking. Every process has
// it.
const PlayersList = "players"

// Counter is a counter of the game.
type Counter struct {
	Count    int64 `json:"count"`
	Capacity int64 `json:"capacity"`
}

// List is a list of the game.
type List struct {
	Capacity int64    `json:"capacity"`
	Values   []string `json:"values"`
}

// Health defines how often a game must report that it is healthy.
type Health struct {
	Disabled     bool          `json:"disabled,omitzero"`
	Period       time.Duration `json:"period"`
	Failures     int           `json:"failures"` // periods without a ping after which the process is unhealthy
	InitialDelay time.Duration `json:"initialDelay"`
}

// clone returns a copy. It shares the values of lists, which are replaced and never modified.
func (m *Memory) clone() Memory {
	c := *m
	c.Labels, c.Annotations, c.Counters, c.Lists, c.Seats = maps.Clone(m.Labels), maps.Clone(m.Annotations), maps.Clone(m.Counters), maps.Clone(m.Lists), maps.Clone(m.Seats)
	return c
}

// wantsSessions reports whether the service should consider the process ready.
func (m *Memory) wantsSessions() bool {
	return m.State == RequestReady || m.State == Ready || m.State == Allocated && m.Session != ""
}

// leave ends what the service has of the process: its game session and its readiness.
func (m *Memory) leave() {
	m.Leaving = m.Registered
	m.Session, m.Active, m.Seats = "", false, nil
}

// seated returns the players whom the game has named, by player tracking and in the list that Agones recommends instead.
func (m *Memory) seated() []string {
	all := slices.Concat(m.Players.Values, m.Lists[PlayersList].Values)
	slices.Sort(all)
	return slices.Compact(all)
}

// life is the part of the memory that must be saved at once, because the next agent depends on it.
type life struct {
	state                       State
	session                     string
	registered, leaving, active bool
	seats                       int
}

func (m *Memory) life() life {
	return life{m.State, m.Session, m.Registered, m.Leaving, m.Active, len(m.Seats)}
}

// size returns how many bytes of the memory the game has set.
func (m *Memory) size() (n int) {
	for _, pairs := range []map[string]string{m.Labels, m.Annotations} {
		for key, value := range pairs {
			n += len(key) + len(value)
		}
	}
	for _, l := range m.Lists {
		for _, value := range l.Values {
			n += len(value)
		}
	}
	for _, value := range m.Players.Values {
		n += len(value)
	}
	return n
}
