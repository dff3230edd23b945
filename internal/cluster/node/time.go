package node

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/cluster/exchange"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

// clock is the question for the cluster's time.
const clock = 't'

// answerTime answers a new leader that has not heard the time since it started.
func (n *Node) answerTime(context.Context, []byte) ([]byte, error) {
	now, known := n.engine.KnownTime()
	if !known {
		return nil, errors.New("this node does not know the time of the cluster either")
	}
	return binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli())), nil
}

// learnWait bounds how long a node that does not know the time waits for others that may. Only a node that is elected right after its start waits,
// for example after a start of the whole cluster.
const learnWait = time.Second

// learnTime asks the other nodes for the time, unless this node knows it.
func (n *Node) learnTime(ctx context.Context) {
	if _, known := n.engine.KnownTime(); known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, learnWait)
	defer cancel()
	var asking sync.WaitGroup
	for _, m := range n.members() {
		if m.ID != n.ID() {
			asking.Go(func() {
				if n.askTime(ctx, m) == nil {
					cancel() // one answer is enough
				}
			})
		}
	}
	asking.Wait()
}

func (n *Node) askTime(ctx context.Context, m journalraft.Member) error {
	asked := time.Now()
	conn, err := n.dial(ctx, m.Address, m.ID)
	if err != nil {
		return err
	}
	c := exchange.NewClient(conn)
	defer c.Close()
	answer, err := c.AskFor(ctx, clock, nil)
	if err != nil {
		return err
	}
	if len(answer) != 8 {
		return errors.New("the answer is not a time")
	}
	n.engine.Heard(time.UnixMilli(int64(binary.BigEndian.Uint64(answer))), time.Since(asked))
	return nil
}
