package raft

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

// TestOneNode and TestThreeNodes check the guarantees of every journal. A second writer is a second run: of the same
// node, or of another one to which the first hands over.
func TestOneNode(t *testing.T) { conform(t, "a") }

func TestThreeNodes(t *testing.T) { conform(t, "a", "b", "c") }

func conform(t *testing.T, ids ...string) {
	var mu sync.Mutex
	open := map[string]*shared{}
	journaltest.Run(t, journaltest.Engine{
		Open: func(name string) (journal.Journal, error) {
			mu.Lock()
			defer mu.Unlock()
			s := open[name]
			if s == nil || s.users == 0 {
				known := s != nil
				disks := map[string]vfs.FS{}
				if known {
					disks = s.disks
				}
				s = &shared{disks: disks, home: ids[0]}
				s.cluster = newCluster(t, func(id string) Options {
					if disks[id] == nil {
						disks[id] = vfs.NewMem()
					}
					return Options{Dir: "data", FS: disks[id], Trailing: 8}
				})
				open[name] = s
				if err := s.start(known, ids); err != nil {
					return nil, errors.Join(err, s.stopAll())
				}
			} else if len(ids) > 1 {
				s.home = ids[1]
			}
			j, err := s.leadAt(s.home)
			if err != nil {
				return nil, err
			}
			s.users++
			return &opened{Journal: j, mu: &mu, shared: s}, nil
		},
		Within: synctest.Test,
	})
}

// shared is a cluster that is stopped with the last of its journals.
type shared struct {
	*cluster
	users int
	disks map[string]vfs.FS
	home  string // the node that leads: each node has its own snapshots
}

// leadAt makes a node the leader.
func (s *shared) leadAt(id string) (*Journal, error) {
	ctx := context.Background()
	for {
		j, err := s.lead(ctx)
		if err != nil || j.node.options.ID == id {
			return j, err
		}
		if err := j.node.HandOver(ctx, id); err != nil {
			return nil, err
		}
	}
}

func (s *shared) start(known bool, ids []string) error {
	if !known {
		return s.grow(ids...)
	}
	for _, id := range ids {
		if _, err := s.cluster.start(id, false); err != nil {
			return err
		}
	}
	return nil
}

type opened struct {
	*Journal
	mu     *sync.Mutex
	shared *shared
	closed bool
}

func (o *opened) Close() error {
	err := o.Journal.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return err
	}
	o.closed = true
	if o.shared.users--; o.shared.users == 0 {
		err = errors.Join(err, o.shared.stopAll())
	}
	return err
}
