package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/plural"
)

type clusterCommand struct {
	JoinToken clusterJoinToken `cmd:"" name:"join-token" help:"Print a token with which one more node can join, within an hour."`
	Status    clusterStatus    `cmd:"" help:"Show the nodes, the leader, and what the loss of one more would mean."`
	Promote   clusterPromote   `cmd:"" help:"Give an observer a vote."`
	Demote    clusterDemote    `cmd:"" help:"Take a node's vote. It stays as an observer."`
	Remove    clusterRemove    `cmd:"" help:"Remove a node for good, such as one whose machine is lost. It cannot come back with its old data."`
	HandOver  clusterHandOver  `cmd:"" name:"hand-over" help:"Make another node the leader without interruption."`
	Locate    clusterLocate    `cmd:"" help:"Tell this node another node's new address, when the addresses of all nodes have changed at once."`
	Authority clusterAuthority `cmd:"" name:"replace-authority" help:"Give the cluster a new certificate authority while it runs. Certificates and join tokens of the old one become invalid."`
	Leave     clusterLeave     `cmd:"" help:"Make the last node of a cluster a single machine again. The service must be stopped."`
	Recover   clusterRecover   `cmd:"" help:"When the majority is lost for good: turn this node into a cluster of its own. The service must be stopped."`
}

// clusterAt selects the node that receives the request. Any node of the cluster will do.
type clusterAt struct{ dataFlag }

func (a *clusterAt) client() (*localdoor.Client, error) {
	if err := mustExist(a.Data); err != nil {
		return nil, err
	}
	c, err := a.dataFlag.client()
	if errors.Is(err, localdoor.ErrNoService) {
		err = fmt.Errorf("%w: this command needs the running service of a node", err)
	}
	return c, err
}

type clusterJoinToken struct {
	clusterAt
	reasonFlag
}

func (c *clusterJoinToken) Run(ctx context.Context, stdout io.Writer) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	client.Reason = c.Reason
	text, err := client.JoinToken(ctx)
	if err == nil {
		_, err = fmt.Fprintln(stdout, text)
	}
	return err
}

type clusterStatus struct {
	clusterAt
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *clusterStatus) Run(ctx context.Context, stdout io.Writer) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	s, err := client.ClusterStatus(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, s)
	}
	return printStatus(stdout, s)
}

func printStatus(stdout io.Writer, s node.Status) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tADDRESS\tROLE\tBEHIND\tHEARD\tCLOCK\tVERSION")
	for _, m := range s.Members {
		behind, heard, clock := "-", "-", "-"
		switch {
		case m.ID == s.Leader:
		case m.Missing:
			heard = "missing"
		case m.Silent > 0 || m.Version != "":
			behind, heard = plural.Of(m.Behind, "entry", "entries"), fmt.Sprintf("%s ago", (time.Duration(m.Silent)*time.Millisecond).Round(10*time.Millisecond))
			clock = (time.Duration(m.Clock) * time.Millisecond).Round(10 * time.Millisecond).String()
		}
		if m.Copies {
			behind += ", copies the archive"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, m.Address, m.Role, behind, heard, clock, cmp.Or(m.Version, "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	leader := s.Leader
	if leader == "" {
		leader = "none known"
	}
	if _, err := fmt.Fprintf(stdout, "\nleader   %s, term %s\nentry    %d, level %d\nasked    %s\noutlook  %s\n", leader, strconv.FormatUint(s.Term, 10), s.Entry, s.Level, s.By, s.Outlook); err != nil {
		return err
	}
	for _, m := range s.Members {
		if m.NoVote != "" {
			if _, err := fmt.Fprintf(stdout, "no vote  %s: %s\n", m.ID, m.NoVote); err != nil {
				return err
			}
		}
		if m.Short {
			if _, err := fmt.Fprintf(stdout, "no room  %s has too little disk space, or too few file descriptors, for changes\n", m.ID); err != nil {
				return err
			}
		}
		if len(m.Differs) > 0 {
			if _, err := fmt.Fprintf(stdout, "settings %s differs from the leader in: %s\n", m.ID, strings.Join(m.Differs, ", ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// clusterNode has the flags and the argument of commands about one node.
type clusterNode struct {
	clusterAsk
	Node string `arg:"" help:"Id of the node, as muster cluster status shows it."`
}

func (c *clusterNode) change(ctx context.Context, stdout io.Writer, do string) error {
	return c.ask(ctx, stdout, node.Change{Do: do, Node: c.Node})
}

// clusterAsk has the flags of commands that change the cluster.
type clusterAsk struct {
	clusterAt
	reasonFlag
}

func (a *clusterAsk) ask(ctx context.Context, stdout io.Writer, change node.Change) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	client.Reason = a.Reason
	s, err := client.ChangeCluster(ctx, change)
	if err != nil {
		return err
	}
	return printStatus(stdout, s)
}

type clusterPromote struct{ clusterNode }

func (c *clusterPromote) Run(ctx context.Context, stdout io.Writer) error {
	return c.change(ctx, stdout, node.Promote)
}

type clusterDemote struct{ clusterNode }

func (c *clusterDemote) Run(ctx context.Context, stdout io.Writer) error {
	return c.change(ctx, stdout, node.Demote)
}

type clusterRemove struct{ clusterNode }

func (c *clusterRemove) Run(ctx context.Context, stdout io.Writer) error {
	return c.change(ctx, stdout, node.Remove)
}

type clusterLocate struct {
	clusterNode
	Address string `arg:"" help:"Address of that node for other nodes, HOST:PORT."`
}

func (c *clusterLocate) Run(ctx context.Context, stdout io.Writer) error {
	return c.ask(ctx, stdout, node.Change{Do: node.Locate, Node: c.Node, Address: c.Address})
}

type clusterAuthority struct{ clusterAsk }

func (c *clusterAuthority) Run(ctx context.Context, stdout io.Writer) error {
	return c.ask(ctx, stdout, node.Change{Do: node.Replace})
}

type clusterHandOver struct {
	clusterAsk
	Node string `arg:"" optional:"" help:"Id of the new leader. Default: the node that is present and furthest ahead."`
}

func (c *clusterHandOver) Run(ctx context.Context, stdout io.Writer) error {
	return c.ask(ctx, stdout, node.Change{Do: node.HandOver, Node: c.Node})
}
