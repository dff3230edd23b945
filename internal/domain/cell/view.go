package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// View reads the state of all rooms. It returns copies, whose slices must not be changed. It stores the number of the newest change that
// was read, so that a caller can wait until that is durable: no client ever reads a change that can still be lost.
type View struct {
	hostingView
	gameserversView
	noticeView
	matchmakingView
	playerflowView
	inspectionView
	accessView
	membershipView
	capacityView
	hostsView
	auditView
	grantsView
	peopleView
	own kernel.Reader
	c   *Cell
}

type (
	hostingView     = hosting.View
	gameserversView = gameservers.View
	noticeView      = notice.View
	matchmakingView = matchmaking.View
	playerflowView  = playerflow.View
	inspectionView  = inspection.View
	accessView      = access.View
	membershipView  = membership.View
	capacityView    = capacity.View
	hostsView       = hosts.View
	auditView       = audit.View
	grantsView      = grants.View
	peopleView      = people.View
)

// View returns a View. It is valid until the next command is executed.
func (c *Cell) View() View {
	return View{c.hosting.View(), c.gameservers.View(), c.notices.View(), c.matchmaking.View(), c.playerflow.View(), c.inspection.View(), c.access.View(), c.membership.View(), c.capacity.View(), c.hosts.View(), c.audit.View(), c.grants.View(), c.people.View(), c.Reader(), c}
}

// Seen returns the journal number of the newest change that was read.
func (v *View) Seen() uint64 {
	return max(v.hostingView.Seen(), v.gameserversView.Seen(), v.noticeView.Seen(), v.matchmakingView.Seen(), v.playerflowView.Seen(), v.inspectionView.Seen(), v.accessView.Seen(), v.membershipView.Seen(), v.capacityView.Seen(), v.hostsView.Seen(), v.auditView.Seen(), v.peopleView.Seen(), v.grantsView.Seen(), v.own.Seen())
}

// Forgotten counts the records that left memory for the archive; see Kernel.Forgotten.
func (v *View) Forgotten() uint64 {
	v.own.SawAll()
	return v.c.Forgotten()
}

// Ended returns up to `most` records that ended before `before`, in the order of their ends, beginning with the skip-th.
func (v *View) Ended(skip, most int, before domain.Time) []kernel.EndedRecord {
	all := make([]kernel.EndedRecord, 0, max(0, min(most, v.c.Kernel.Ended.Len()-skip)))
	for i := skip; i < v.c.Kernel.Ended.Len() && len(all) < most; i++ {
		x := v.endedRecord(v.c.Kernel.Ended.At(i))
		if x.Ended > before {
			break
		}
		all = append(all, x)
	}
	return all
}

func (v *View) endedRecord(e kernel.Ended) kernel.EndedRecord {
	switch e.Room {
	case matchmaking.Room:
		return v.matchmakingView.EndedRecord(e)
	case playerflow.Room:
		return v.playerflowView.EndedRecord(e)
	case audit.Room:
		return v.auditView.EndedRecord(e)
	default:
		return v.hostingView.EndedRecord(e)
	}
}

// RecordCounts counts all records that callers can create. It is for metrics, so it may be ahead of what is durable.
func (v *View) RecordCounts() []kernel.RecordCount {
	all := v.HostingCounts()
	all = append(all, v.GameServerCounts()...)
	all = append(all, v.MatchmakingCounts()...)
	all = append(all, v.NoticeCounts()...)
	all = append(all, v.CapacityCounts()...)
	all = append(all, v.HostCounts()...)
	all = append(all, v.PeopleCounts()...)
	return append(all, v.FlowCounts()...)
}

// Held is the memory used by tickets, placements and player sessions in bytes, with the limits.
type Held struct {
	Tickets, Placements, PlayerSessions          int64
	TicketsMax, PlacementsMax, PlayerSessionsMax int64
}

// Held returns the memory used by records with data from callers.
func (v *View) Held() Held {
	c := v.c
	return Held{
		c.matchmaking.Records.Held().Bytes(), c.hosting.Placements.Held().Bytes(), c.hosting.Sessions.Held().Bytes(),
		c.config.Matchmaking.TicketBytesMax, c.config.Hosting.PlacementBytesMax, c.config.Hosting.PlayerSessionBytesMax,
	}
}
