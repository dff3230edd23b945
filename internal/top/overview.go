package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/terminal"
)

// overviewSheet is the first page. Rates are between two overviews.
type overviewSheet struct{ now, before *operator.Overview }

// itemKind is the kind of pages that show an item of the overview in full, because its object has no explanation. Its id is the item's text.
const itemKind = "item"

// pageOf is the page that an item leads to.
func pageOf(x *attention.Item) operator.Named {
	if _, ok := loaders[x.Kind]; ok || explained(x.Kind) {
		return operator.Named{Kind: x.Kind, ID: x.ID}
	}
	return operator.Named{Kind: itemKind, ID: x.What + "\n" + x.Next}
}

func (s *overviewSheet) lines(width int) (all []line) {
	x := s.now
	all = append(all, line{text: "Needs attention", look: heading})
	switch items := x.Attention.Items; {
	case len(items) > 0:
		for i := range items {
			all = append(all, wrapped("! "+items[i].What, width, trouble, pageOf(&items[i]))...)
			all = append(all, wrapped("  "+items[i].Next, width, plain, operator.Named{})...)
		}
		if x.Attention.Others > 0 {
			all = append(all, line{text: fmt.Sprintf("  And %d more.", x.Attention.Others)})
		}
		if x.Attention.More {
			all = append(all, line{text: fmt.Sprintf("  Only the oldest %d fleets are examined.", attention.FleetsMost)})
		}
	case x.Sums.Fleets == 0:
		all = append(all, wrapped("  There is no fleet yet. aws gamelift create-location --location-name custom-home, then aws gamelift create-fleet --name arena --compute-type ANYWHERE --locations Location=custom-home.",
			width, plain, operator.Named{})...)
	default:
		all = append(all, line{text: "  Nothing: every fleet can start a game session."})
	}
	all = append(all, line{})
	all = append(all, s.figures(width)...)
	return append(all, s.tables()...)
}

// figures are the sums and the health of the node, a line for each.
func (s *overviewSheet) figures(width int) (all []line) {
	x, h := &s.now.Sums, &s.now.Health
	say := func(name, form string, values ...any) {
		all = append(all, wrapped(fmt.Sprintf("%-9s ", name)+fmt.Sprintf(form, values...), width, plain, operator.Named{})...)
	}
	say("Runs", "%s, %s, %s (%d free), %s", plural.Of(x.Fleets, "fleet", "fleets"), plural.Of(x.Computes, "compute", "computes"), plural.Of(x.Processes, "server process", "server processes"),
		x.FreeProcesses, plural.Of(x.GameSessions, "game session", "game sessions"))
	players := fmt.Sprintf("%d connected, %s reserved, %s free", x.PlayersConnected, plural.Of(x.PlayersReserved, "seat", "seats"), plural.Of(x.FreeSeats, "seat", "seats"))
	if x.LoggedIn > 0 || x.Parties > 0 {
		players += fmt.Sprintf(", %d logged in, %s", x.LoggedIn, plural.Of(x.Parties, "party", "parties"))
	}
	say("Players", "%s", players)
	say("Waiting", "%s, %s, %s", plural.Of(x.Placements, "placement", "placements"), plural.Of(x.Tickets, "ticket", "tickets"), plural.Of(h.CommandsWait, "command", "commands"))
	say("Calls", "%s", s.calls())
	if h.Trouble != "" {
		all = append(all, wrapped("Service   refuses changes: "+h.Trouble, width, trouble, operator.Named{})...)
	}
	return all
}

// calls says how many calls the node answers, and how long its commits take.
func (s *overviewSheet) calls() string {
	h := s.now.Health
	each := func(n uint64, seconds float64) string {
		return fmt.Sprintf("%.1f ms a commit", 1000*seconds/float64(max(n, 1)))
	}
	if s.before != nil {
		was, d := &s.before.Health, s.now.At.Sub(s.before.At).Seconds()
		// A counter that is lower is that of another node, or of one that has restarted.
		if d > 0 && h.Calls >= was.Calls && h.Failed >= was.Failed && h.Throttled >= was.Throttled && h.Refused >= was.Refused && h.Commits >= was.Commits {
			return fmt.Sprintf("%.1f/s (failed %.1f/s, throttled %.1f/s, refused %.1f/s), %.1f commits/s, %s", float64(h.Calls-was.Calls)/d, float64(h.Failed-was.Failed)/d, float64(h.Throttled-was.Throttled)/d,
				float64(h.Refused-was.Refused)/d, float64(h.Commits-was.Commits)/d, each(h.Commits-was.Commits, h.CommitSeconds-was.CommitSeconds))
		}
	}
	return fmt.Sprintf("%d since the start (failed %d, throttled %d, refused %d), %s", h.Calls, h.Failed, h.Throttled, h.Refused, each(h.Commits, h.CommitSeconds))
}

func (s *overviewSheet) tables() (all []line) {
	x := s.now
	fleets := newTable("FLEET", "STATUS", "PROCESSES", "FREE", "SESSIONS", "PLAYERS", "SEATS FREE", "ID")
	for i := range x.Fleets {
		f := &x.Fleets[i]
		fleets.add(operator.Named{Kind: "fleet", ID: f.ID}, plain, f.Name, f.Status, f.Processes, f.FreeProcesses, f.GameSessions, f.PlayersConnected+f.PlayersReserved, f.FreeSeats, f.ID)
	}
	all = append(append(all, head("Fleets"+shown(len(x.Fleets), x.Sums.Fleets))...), fleets.lines("none")...)
	if len(x.Hosts) > 0 {
		var states []string
		inAll := 0
		for _, state := range slices.Sorted(maps.Keys(x.HostsIn)) {
			states = append(states, fmt.Sprintf("%d %s", x.HostsIn[state], state))
			inAll += x.HostsIn[state]
		}
		hosts := newTable("HOST", "STATE", "PROCESSES", "SESSIONS", "SEEN", "COMPUTE")
		for i := range x.Hosts {
			h := &x.Hosts[i]
			to, how := operator.Named{}, plain
			if h.Serves != "" {
				to = operator.Named{Kind: "compute", ID: h.Serves + "/" + h.Compute}
			}
			if h.State == "silent" {
				how = trouble
			}
			hosts.add(to, how, h.Name, h.State, h.Processes, h.GameSessions, ago(h.Seen, x.At), cmp.Or(to.ID, "-"))
		}
		all = append(append(all, head("Hosts: "+strings.Join(states, ", ")+shown(len(x.Hosts), inAll))...), hosts.lines("none")...)
	}
	if len(x.Queues) > 0 {
		queues := newTable("QUEUE", "PLACEMENTS", "AVERAGE WAIT")
		for _, q := range x.Queues {
			queues.add(operator.Named{Kind: "queue", ID: q.Name}, plain, q.Name, q.Placements, time.Duration(q.WaitSeconds*float64(time.Second)).Round(time.Second))
		}
		all = append(append(all, head("Queues")...), queues.lines("none")...)
	}
	if len(x.Matchmaking) > 0 {
		configurations := newTable("MATCHMAKING", "TICKETS")
		for _, m := range x.Matchmaking {
			configurations.add(operator.Named{}, plain, m.Name, m.Tickets)
		}
		all = append(append(all, head("Matchmaking")...), configurations.lines("none")...)
	}
	if x.Cluster != nil {
		nodes := newTable("NODE", "ROLE", "BEHIND", "ADDRESS", "VERSION")
		for _, m := range x.Cluster.Members {
			role, how := m.Role, plain
			if m.Missing {
				role, how = role+", missing", trouble
			}
			nodes.add(operator.Named{}, how, m.ID, role, m.Behind, m.Address, cmp.Or(m.Version, "-"))
		}
		all = append(append(all, head("Cluster: "+terminal.Printable(x.Cluster.Outlook))...), nodes.lines("none")...)
	}
	return all
}

// shown says how many there are in all, if not all are listed.
func shown(listed, all int) string {
	if listed >= all {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", listed, all)
}
