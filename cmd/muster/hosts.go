package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/plural"
)

type hostsCommand struct {
	List        hostsList        `cmd:"" default:"withargs" help:"List the hosts that have joined, and the join tokens that can still be used."`
	JoinToken   hostsJoinToken   `cmd:"" name:"join-token" help:"Print a token with which hosts can join. It is shown once."`
	RevokeToken hostsRevokeToken `cmd:"" name:"revoke-token" help:"Revoke a join token. Hosts that have joined with it stay, unless --hosts is given."`
	Revoke      hostsRevoke      `cmd:"" help:"Revoke a host permanently: its connection is closed, its server processes and their game sessions end."`
	Drain       hostsDrain       `cmd:"" help:"Empty a host: it gets no new game sessions, those that it has finish, and it leaves its fleet."`
}

type hostsList struct {
	serviceFlags
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *hostsList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	service, err := c.reach(ctx, env, identity.MayLook)
	if err != nil {
		return err
	}
	var list operator.HostList
	if err := service.call(ctx, http.MethodGet, "hosts", nil, &list); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, list)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tLOCATION\tSTATE\tSERVES\tPROCESSES\tSESSIONS\tLOAD\tMEMORY\tPORTS\tVERSION\tJOINED\tSEEN\tID")
	for i := range list.Hosts {
		h := &list.Hosts[i]
		load, memory, ports := used(h)
		seen := "-"
		if !h.Seen.IsZero() {
			seen = h.Seen.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, h.Location, h.State, cmp.Or(h.Serves, "-"), h.Processes, h.GameSessions,
			load, memory, ports, cmp.Or(printable(h.Version), "-"), h.Joined.Format(time.RFC3339), seen, h.ID)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range list.Hosts {
		h := &list.Hosts[i]
		if len(h.SharedBy) > 0 {
			if _, err := fmt.Fprintf(stdout, "host %s: several agents use its identity, from %s: remove host.json from the state directory of each copy, and give its agent a join token\n",
				h.Name, listed(h.SharedBy)); err != nil {
				return err
			}
		}
		for k := range h.Troubles {
			if _, err := fmt.Fprintf(stdout, "host %s: %s\n", h.Name, printable(attention.Launch(&h.Troubles[k]))); err != nil {
				return err
			}
		}
	}
	for _, x := range list.Tokens {
		if _, err := fmt.Fprintf(stdout, "join token %s: %s for %s in %s, until %s\n",
			x.ID, plural.Of(x.Uses, "more host", "more hosts"), cmp.Or(x.Fleet, "any fleet of a build"), cmp.Or(x.Location, "any location of the fleet"), x.Expires.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

// used returns the columns LOAD, MEMORY and PORTS of a host.
func used(h *operator.Host) (load, memory, ports string) {
	load, memory, ports = "-", "-", fmt.Sprint(h.Ports)
	if h.MemoryMB > 0 {
		memory = fmt.Sprintf("%d MiB", h.MemoryMB)
	}
	if m := h.Metrics; m != nil {
		if m.MemoryTotalBytes > 0 { // otherwise the agent does not measure its host, as on Windows
			load, memory = fmt.Sprintf("%.2f", m.Load1), fmt.Sprintf("%d of %d MiB", m.MemoryUsedBytes>>20, m.MemoryTotalBytes>>20)
		}
		ports = fmt.Sprintf("%d of %d", m.PortsUsed, h.Ports)
	}
	return load, memory, ports
}

type hostsJoinToken struct {
	adminChange
	Fleet    string        `placeholder:"FLEET" help:"Id of the only fleet that the hosts may serve. Otherwise they serve any fleet of a build in their location."`
	Location string        `placeholder:"NAME" help:"Location of the hosts. Otherwise each host names one of the fleet's."`
	Uses     uint32        `default:"1" help:"How many hosts may join with the token, at most 10000."`
	Valid    time.Duration `default:"1h" help:"How long the token is valid, at most 720h."`
}

func (c *hostsJoinToken) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if err := checkValid(c.Valid); err != nil {
		return err
	}
	if c.Uses == 0 {
		return errors.New("--uses 0: want 1 or more")
	}
	var made operator.HostToken
	in := operator.NewHostToken{Fleet: c.Fleet, Location: c.Location, Uses: c.Uses, ValidSeconds: int64(c.Valid / time.Second)}
	if err := c.post(ctx, env, "hosts/tokens", in, &made); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, made.Token)
	return err
}

type hostsRevokeToken struct {
	adminChange
	Hosts bool   `help:"Also revoke all hosts that have joined with the token, permanently. The token may be used up."`
	ID    string `arg:"" help:"Id of the token, as muster hosts shows it; for a used-up one, as muster hosts --json shows it for each host."`
}

func (c *hostsRevokeToken) Run(ctx context.Context, stdout io.Writer, env environment) error {
	path := "hosts/tokens/" + url.PathEscape(c.ID)
	if c.Hosts {
		var done operator.HostsRevoked
		if err := c.post(ctx, env, path+"/revoke-hosts", struct{}{}, &done); err != nil {
			return err
		}
		_, err := fmt.Fprintf(stdout, "join token %s is revoked, and %s have ended\n", done.ID,
			plural.Of(len(done.Hosts), "host that joined with it was revoked: its game sessions", "hosts that joined with it were revoked: their game sessions"))
		return err
	}
	var done operator.HostNamed
	if err := c.post(ctx, env, path+"/revoke", struct{}{}, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "join token %s is void\n", done.ID)
	return err
}

type hostsRevoke struct {
	adminChange
	Host string `arg:"" help:"Name or id of the host."`
}

func (c *hostsRevoke) Run(ctx context.Context, stdout io.Writer, env environment) error {
	var done operator.HostNamed
	if err := c.post(ctx, env, "hosts/"+url.PathEscape(c.Host)+"/revoke", struct{}{}, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "host %s is revoked: its connection is closed and its game sessions have ended\n", done.ID)
	return err
}

type hostsDrain struct {
	adminChange
	Undo bool   `help:"End the drain: the host serves fleets again."`
	Host string `arg:"" help:"Name or id of the host."`
}

func (c *hostsDrain) Run(ctx context.Context, stdout io.Writer, env environment) error {
	var done operator.HostNamed
	if err := c.post(ctx, env, "hosts/"+url.PathEscape(c.Host)+"/drain", operator.HostDrain{Undo: c.Undo}, &done); err != nil {
		return err
	}
	text := "host %s gets no new game sessions; muster hosts shows the remaining ones\n"
	if c.Undo {
		text = "host %s serves fleets again\n"
	}
	_, err := fmt.Fprintf(stdout, text, done.ID)
	return err
}
