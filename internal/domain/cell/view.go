package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// View reads the state of all rooms. What it returns are copies, whose slices must not be changed. It notes the newest change
// that it has shown, so that its reader can wait until that is durable: nothing that was ever told can be lost.
type View struct {
	hostingView
	gameserversView
	noticeView
	matchmakingView
	playerflowView
	inspectionView
	accessView
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
)

// View returns a View. It is good as long as no command is executed.
func (c *Cell) View() View {
	return View{c.hosting.View(), c.gameservers.View(), c.notices.View(), c.matchmaking.View(), c.playerflow.View(), c.inspection.View(), c.access.View(), c.Reader(), c}
}

// Seen is the journal number of the newest change that was shown.
func (v *View) Seen() uint64 {
	return max(v.hostingView.Seen(), v.gameserversView.Seen(), v.noticeView.Seen(), v.matchmakingView.Seen(), v.playerflowView.Seen(), v.inspectionView.Seen(), v.accessView.Seen(), v.own.Seen())
}

// Forgotten is how many records have left memory for the archive; see Kernel.Forgotten.
func (v *View) Forgotten() uint64 {
	v.own.SawAll()
	return v.c.Forgotten()
}

// Ended returns up to `most` of the records that ended before `before`, in the order they ended, beginning with the
// skip-th.
func (v *View) Ended(skip, most int, before domain.Time) []kernel.EndedRecord {
	var all []kernel.EndedRecord
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
	default:
		return v.hostingView.EndedRecord(e)
	}
}

// RecordCounts counts everything that callers can make. It says nothing that has to be durable: it is for metrics.
func (v *View) RecordCounts() []kernel.RecordCount {
	all := v.HostingCounts()
	all = append(all, v.GameServerCounts()...)
	all = append(all, v.MatchmakingCounts()...)
	all = append(all, v.NoticeCounts()...)
	return append(all, v.FlowCounts()...)
}

// Held is how many bytes tickets, placements and player sessions hold, and how many they may.
type Held struct {
	Tickets, Placements, PlayerSessions          int64
	TicketsMax, PlacementsMax, PlayerSessionsMax int64
}

// Held tells how much memory the records hold that callers bring data for.
func (v *View) Held() Held {
	c := v.c
	return Held{
		c.matchmaking.Records.Held().Bytes(), c.hosting.Placements.Held().Bytes(), c.hosting.Sessions.Held().Bytes(),
		c.config.Matchmaking.TicketBytesMax, c.config.Hosting.PlacementBytesMax, c.config.Hosting.PlayerSessionBytesMax,
	}
}
