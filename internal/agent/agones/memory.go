package agones

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
)

// State is the state of an Agones GameServer.
type State string

// The states that a game can see here.
const (
	Scheduled    State = "Scheduled" // the process runs and has not said that it is ready
	RequestReady State = "RequestReady"
	Ready        State = "Ready"
	Reserved     State = "Reserved"
	Allocated    State = "Allocated"
	Shutdown     State = "Shutdown"
	Unhealthy    State = "Unhealthy"
)

// final returns whether nothing comes after a state.
func (s State) final() bool { return s == Shutdown || s == Unhealthy }

// Memory is all that must outlive the agent.
type Memory struct {
	Version int64 `json:"version"` // counts the changes
	Turn    int64 `json:"turn"`    // the version in which the life of the process changed last
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
	ReservedUntil time.Time `json:"reservedUntil,omitzero"` // zero: for ever

	Fleet   string `json:"fleet,omitzero"` // that the process has registered in, with its compute
	Compute string `json:"compute,omitzero"`
	// Registered says that the service takes the process for ready. Leaving says that it has to be told that the process is not, any more: its game session
	// is over, or it withdraws.
	Registered bool `json:"registered,omitzero"`
	Leaving    bool `json:"leaving,omitzero"`

	Session string   `json:"session,omitzero"` // ARN of the game session; empty: none
	Given   []string `json:"given,omitzero"`   // labels and annotations that are game properties of the latest game session
	Active  bool     `json:"active,omitzero"`  // the service knows that it is active
	// Seats are the player sessions of the players that the game has named; empty: that player has none.
	Seats map[string]string `json:"seats,omitzero"`
}

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

// Health says how often a game tells that it is well.
type Health struct {
	Disabled     bool          `json:"disabled,omitzero"`
	Period       time.Duration `json:"period"`
	Failures     int           `json:"failures"` // periods without a sign until the process is unhealthy
	InitialDelay time.Duration `json:"initialDelay"`
}

// clone returns a copy. What lists have in them is shared: it is replaced, never written to.
func (m *Memory) clone() Memory {
	c := *m
	c.Labels, c.Annotations, c.Counters, c.Lists, c.Seats = maps.Clone(m.Labels), maps.Clone(m.Annotations), maps.Clone(m.Counters), maps.Clone(m.Lists), maps.Clone(m.Seats)
	return c
}

// wantsSessions returns whether the service should take the process for ready.
func (m *Memory) wantsSessions() bool {
	return m.State == RequestReady || m.State == Ready || m.State == Allocated && m.Session != ""
}

// leave ends what the service has of the process: its game session, and that it is ready.
func (m *Memory) leave() {
	m.Leaving = m.Registered
	m.Session, m.Active, m.Seats = "", false, nil
}

// seated are the players that the game has named: with player tracking, and in the list that Agones proposes in its place.
func (m *Memory) seated() []string {
	all := slices.Concat(m.Players.Values, m.Lists[PlayersList].Values)
	slices.Sort(all)
	return slices.Compact(all)
}

// life is what changes in turns of the life of a process: what another agent must not be without.
type life struct {
	state                       State
	session                     string
	registered, leaving, active bool
	seats                       int
}

func (m *Memory) life() life {
	return life{m.State, m.Session, m.Registered, m.Leaving, m.Active, len(m.Seats)}
}

// size is how many bytes the game can make the memory have.
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

func recall(file string) (m Memory, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// keepEvery is the least time between two writes of the file, unless the life of the process has changed: a game that changes its labels all the time does
// not fill the disk's queue.
const keepEvery = time.Second

// keep writes the memory when it has changed.
func (p *Process) keep(ctx context.Context) {
	for written, at := int64(-1), (time.Time{}); ; {
		m, changed := p.look()
		pause := keepEvery - time.Since(at)
		switch {
		case m.Version == written:
			if ctx.Err() != nil {
				return
			}
			pause = time.Hour
		case ctx.Err() != nil || pause <= 0 || m.Turn > written:
			if text, err := json.Marshal(m); err != nil {
				p.log.Error("state of an Agones server cannot be written", "error", err)
			} else if err := atomicfile.Write(p.config.File, text, 0o600); err != nil {
				p.log.Error("state of an Agones server cannot be written: the next agent will not have it", "error", err)
			}
			written, at = m.Version, time.Now()
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(pause):
		}
	}
}
