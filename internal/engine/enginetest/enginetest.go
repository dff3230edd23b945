// Package enginetest opens engines in memory, for the tests of packages that use one.
package enginetest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

// Open opens an engine on an archive and, unless c has one, a journal in memory. It is closed when the test ends.
func Open(t testing.TB, c engine.Config) *engine.Engine {
	t.Helper()
	var err error
	if c.Journal == nil {
		if c.Journal, err = journaltest.NewMemory(1).Open(); err != nil {
			t.Fatal(err)
		}
	}
	if c.Archive, err = archivetest.NewMemory(1).Open(); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Leaderless are the peers of a node whose cluster has no leader.
type Leaderless struct{ engine.Peers }

// Index implements engine.Peers.
func (Leaderless) Index(context.Context) (uint64, error) { return 0, engine.ErrNotLeading }

// Leading are the peers of a node that leads its cluster. Its commands succeed; its reads fail as without a leader once Lost is set.
type Leading struct {
	engine.Peers
	Lost atomic.Bool
}

// Index implements engine.Peers.
func (l *Leading) Index(context.Context) (uint64, error) {
	if l.Lost.Load() {
		return 0, engine.ErrNotLeading
	}
	return 0, nil
}

// Verify implements engine.Peers.
func (l *Leading) Verify(context.Context) error { return nil }
