package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/socketerror"
)

// hangs reports if the service of the data directory hangs. Without a public URL, the endpoint is this service, which is then not asked again.
func (x *examination) hangs(ctx context.Context) {
	if x.Seek != nil {
		x.Seek(ctx, x.Config)
	}
	if x.Hangs == nil {
		return
	}
	x.add("service", Failure, restart, "the service does not answer: %v", x.Hangs)
	x.silent = x.Settings.PublicURL == ""
}

// service reports the running service's status, above all what needs an operator's attention.
func (x *examination) service(ctx context.Context) {
	const check = "service"
	if x.silent {
		if x.Hangs == nil { // otherwise hangs has added a finding
			x.skip(check)
		}
		return
	}
	if x.Service == nil {
		const do, found = "name an access key with --profile or in the environment, or run the command as a user who may read the data directory", "no access key is set, so the service was not queried"
		if x.NoService != nil {
			x.add(check, Skipped, do, "%s: %v", found, x.NoService)
		} else {
			x.add(check, Skipped, do, found)
		}
		return
	}
	overview, err := x.Service.Overview(ctx)
	if err != nil {
		do := x.start("start it, or read its log")
		if x.Running && !socketerror.Refused(err) { // it may have these settings, but the way to it is broken
			do = "see the finding about the public URL: this command queries the service there"
		}
		x.add(check, Failure, do, "%v", err)
		return
	}
	x.overview = overview
	found := overview.Attention
	if len(found.Items) == 0 {
		x.add(check, OK, "", "nothing needs attention")
	}
	for i := range found.Items {
		item := &found.Items[i]
		x.add(check, Warning, item.Next, "%s", item.What)
	}
	if found.Others > 0 || found.More {
		x.add(check, Warning, "see all of them in the console", "there are more items that need attention")
	}
}

// backups reports the last backup. The service itself reports if it is too old or missing.
func (x *examination) backups(context.Context) {
	if x.overview == nil || x.overview.Backup == nil {
		return
	}
	b := x.overview.Backup
	x.add("backups", OK, "", "the last one is %s old, in %s", plural.Duration(x.overview.At.Sub(b.Made)), b.To)
}

// secret reports the generations of the installation's secret. The service itself reports what needs to be done about them.
func (x *examination) secret(context.Context) {
	if x.overview == nil || x.overview.Secret.Generations == 0 {
		return
	}
	s := x.overview.Secret
	found := fmt.Sprintf("generations in use: %d, the current one for %s", s.Generations, plural.Duration(x.overview.At.Sub(s.Since)))
	if !s.NextEnds.IsZero() {
		found += fmt.Sprintf("; an earlier one is accepted for %s more", plural.Duration(s.NextEnds.Sub(x.overview.At)))
	}
	if s.AccessKeys > 0 {
		found += fmt.Sprintf("; access keys derived from earlier ones: %d", s.AccessKeys)
	}
	x.add("secret", OK, "", "%s", found)
}

// cluster reports the node's view of the cluster.
func (x *examination) cluster(context.Context) {
	const check = "cluster"
	if x.overview == nil || x.overview.Cluster == nil {
		return
	}
	c := x.overview.Cluster
	if c.Leader == "" {
		x.add(check, Failure, "start the nodes that are down; a majority decides", "the node has no leader, so nothing can change")
	}
	voters, versions := 0, map[string]bool{}
	for _, m := range c.Members {
		if m.Role != "observer" {
			voters++
		}
		if m.Version != "" {
			versions[m.Version] = true
		}
		const behindMax = 10_000 // entries: a few seconds of full load
		switch {
		case m.Missing:
			x.add(check, Failure, "start it, or muster cluster remove "+m.ID+" if its machine is lost", "node %s at %s is silent", m.ID, m.Address)
		case m.Behind > behindMax:
			x.add(check, Warning, "wait if it has just started; otherwise check whether its disk or its network is slow", "node %s at %s is %d entries behind", m.ID, m.Address, m.Behind)
		}
	}
	switch {
	case voters == 2:
		x.add(check, Warning, "let a third node join (muster cluster join-token)", "two nodes have a vote: if either fails, nothing can change")
	case voters%2 == 0:
		x.add(check, Warning, "give an observer a vote, or take one", "%d nodes have a vote, which survive no more failures than %d do", voters, voters-1)
	}
	if len(versions) > 1 {
		x.add(check, Warning, "finish the upgrade: docs/guide/cluster.md#updates", "the nodes run %d different versions", len(versions))
	}
	x.add(check, OK, "", "%s, %d with a vote; %s", plural.Of(len(c.Members), "node", "nodes"), voters, c.Outlook)
}

// agents checks the releases of agents on hosts, which may differ from the service's but should not be much older.
func (x *examination) agents(ctx context.Context) {
	const check = "agents"
	if x.overview == nil {
		return
	}
	hosts, err := x.Service.Hosts(ctx)
	if err != nil {
		x.add(check, Skipped, "", "%v", err)
		return
	}
	joined, others := 0, map[string][]string{}
	for i := range hosts.Hosts {
		h := &hosts.Hosts[i]
		if !h.Revoked.IsZero() {
			continue // the service keeps its record, but no agent can use it
		}
		if joined++; h.Version != "" && h.Version != x.Version {
			others[h.Version] = append(others[h.Version], h.Name)
		}
	}
	for _, version := range slices.Sorted(maps.Keys(others)) {
		names := others[version]
		shown := names[:min(len(names), 5)]
		x.add(check, Warning, "install the same release on the hosts; you can replace an agent while its game servers run", "%s version %.60s of the agent, this is %s: %s", plural.Of(len(names), "host runs", "hosts run"), version, x.Version, strings.Join(shown, ", "))
	}
	if len(others) == 0 && joined > 0 {
		x.add(check, OK, "", "%s, all with this version", plural.Of(joined, "host", "hosts"))
	}
}

// sdk tries InitSDK, the first step of a game server.
func (x *examination) sdk(ctx context.Context) {
	const check = "InitSDK"
	if x.InitSDK == nil {
		x.add(check, Skipped, "", "%s", x.NoSDK)
		return
	}
	if x.silent {
		x.skip(check)
		return
	}
	began := time.Now()
	err := x.InitSDK(ctx, x.trust())
	if why, ok := errors.AsType[Untried](err); ok {
		x.add(check, Skipped, "", "%s", why)
		return
	}
	if err != nil {
		x.add(check, Failure, "see the findings about the public URL, and the log of the service", "a server process could not connect: %v", err)
		return
	}
	x.add(check, OK, "", "a server process was connected and ended within %v", round(time.Since(began)))
}

// round rounds a duration to two or three digits.
func round(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Nanosecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

func size(bytes uint64) string {
	const unit = 1 << 10
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	n, i := float64(bytes), 0
	for ; n >= unit && i < len(names)-1; i++ {
		n /= unit
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") + " " + names[i]
}
