package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/engine"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

type clusterLeave struct {
	dataFlag
	reasonFlag
}

func (c *clusterLeave) Run(ctx context.Context, stdout io.Writer) error {
	key, err := c.takeOver()
	if err != nil {
		return err
	}
	err = node.LeaveCluster(ctx, datadir.Options{Dir: c.Data, Program: "muster cluster leave", Key: key})
	if errors.Is(err, journalraft.ErrMember) {
		err = fmt.Errorf("%w: remove the other nodes first, with `muster cluster remove`", err)
	}
	if errors.Is(err, engine.ErrArchiveLacks) {
		err = fmt.Errorf("%w, and copies them from other nodes while it runs in the cluster; if there are no other nodes left, `muster cluster recover` accepts the loss", err)
	}
	if err != nil {
		return err
	}
	recorded := c.recordMade(c.Data, "cluster leave", "", "")
	_, err = fmt.Fprintf(stdout, "%s is now the data directory of a single machine: start it without --cluster-listen\n", c.Data)
	return errors.Join(recorded, err)
}

type clusterRecover struct {
	dataFlag
	reasonFlag
	Yes string `name:"yes" placeholder:"NODE" help:"Id of this node, to confirm without a prompt."`
}

func (c *clusterRecover) Run(ctx context.Context, stdout io.Writer) error {
	key, err := c.takeOver()
	if err != nil {
		return err
	}
	self := ""
	err = node.RecoverCluster(datadir.Options{Dir: c.Data, Program: "muster cluster recover", Key: key}, func(id string, has journalraft.Recovered, ended archive.Coverage) error {
		self = id
		describeRecovery(stdout, id, has, ended)
		answer := c.Yes
		if answer == "" {
			fmt.Fprintf(stdout, "\nType the id of this node, %s, to continue: ", id)
			if answer, err = answerOf(ctx, os.Stdin); err != nil {
				return fmt.Errorf("not confirmed: %w; nothing has changed", err)
			}
		}
		if answer != id {
			return fmt.Errorf("not confirmed: got %.80q, want %q; nothing has changed", answer, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	recorded := c.recordMade(c.Data, "cluster recover", "node", self)
	_, err = fmt.Fprintf(stdout, "\nThis node is now a cluster of its own. Start it with --cluster-listen as before, and let empty nodes join with new tokens.\n")
	return errors.Join(recorded, err)
}

// answerOf reads a line, without the white space around it. If ctx ends first, the read stays behind: the process is about to end.
func answerOf(ctx context.Context, from io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(from, 1<<10)).ReadString('\n')
		read <- result{line, err}
	}()
	select {
	case x := <-read:
		if errors.Is(x.err, io.EOF) {
			x.err = nil // the end of the input ends the last line
		}
		return strings.TrimSpace(x.line), x.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func describeRecovery(stdout io.Writer, id string, has journalraft.Recovered, ended archive.Coverage) {
	fmt.Fprintf(stdout, "This node, %s, knows these members of the cluster:\n", id)
	for _, m := range has.Members {
		vote := "votes"
		if !m.Votes {
			vote = "observes"
		}
		fmt.Fprintf(stdout, "  %s at %s, %s\n", m.ID, m.Address, vote)
	}
	appended := ""
	if !has.Appended.IsZero() {
		appended = ", written " + has.Appended.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(stdout, "It has the journal up to entry %d%s.\n\n", has.Last, appended)
	if ended.Lacks {
		fmt.Fprintf(stdout, "Its archive is incomplete: records that ended after %s may be missing, unless they ended after the node joined. Missing records count as if they had never existed.\n\n",
			time.UnixMilli(ended.From).UTC().Format(time.RFC3339))
	}
	fmt.Fprint(stdout, "It cannot know whether the other nodes acknowledged changes that had not reached it. Such changes are lost. Changes whose callers never got an answer may take effect.\n"+
		"If another node has a later entry, recover that one instead. If you can still start a majority, do that instead: then nothing is lost.\n"+
		"The other nodes must never run again with their data: wipe them before they join again.\n")
}
