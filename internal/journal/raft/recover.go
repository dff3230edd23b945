package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// Recovered is what a node has of a cluster that has permanently lost its majority.
type Recovered struct {
	Members  []Member  // of the cluster, as this node knows them
	Last     uint64    // number of the last entry that the node has
	Snapshot uint64    // number of the entry after which its latest snapshot was taken; 0: it has none
	Appended time.Time // when a leader appended the last entry; zero: the node has only a snapshot

	State func() (io.ReadCloser, error) // opens the latest snapshot while confirm runs; nil: none
}

// Recover makes the node in o.Dir the only member of its cluster. No process may have the directory open. From then on every entry of the
// node's log counts, even those that were never acknowledged. What other nodes acknowledged and this one does not have is lost: a majority
// may have had entries that had not reached this node. confirm gets what the node has, and decides whether to continue; Recover returns its
// error, and has then changed nothing.
//
// The other nodes must never run again with their data: two of them could be a majority of the old cluster.
func Recover(o Options, confirm func(Recovered) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("recover journal %s: %w", o.Dir, err)
		}
	}()
	c := newConversion(o)
	if there, err := c.exists(o.Dir, o); err != nil || !there {
		return errors.Join(err, errors.New("there is no journal"))
	}
	n, err := c.openOffline(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.store.close()) }()
	configuration, appended, err := n.readRest()
	if err != nil {
		return err
	}
	found := Recovered{Last: n.machine.last(), Snapshot: n.snaps.get().number, Appended: appended}
	address := raft.ServerAddress("")
	for _, s := range configuration.Servers {
		if string(s.ID) == o.ID {
			address = s.Address
		}
		found.Members = append(found.Members, Member{string(s.ID), string(s.Address), s.Suffrage == raft.Voter})
	}
	if found.Snapshot > 0 {
		found.State = func() (io.ReadCloser, error) {
			_, state, err := n.snaps.open()
			return state, err
		}
	}
	if err := confirm(found); err != nil {
		return err
	}
	return n.standAlone(address)
}

// standAlone appends a configuration with only this node, in a new term, because a node uses the newest configuration in its log.
func (n *Node) standAlone(address raft.ServerAddress) error {
	term, err := n.store.GetUint64([]byte("CurrentTerm"))
	if err != nil {
		return err
	}
	index := max(n.store.last.Load(), n.snaps.get().place.index) + 1
	term++
	if err := n.store.Set([]byte("CurrentTerm"), binary.LittleEndian.AppendUint64(nil, term)); err != nil {
		return err
	}
	alone := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(n.options.ID), Address: address}}}
	return n.store.StoreLogs([]*raft.Log{{Index: index, Term: term, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(alone)}})
}
