package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// TicketsSince holds the tickets of a configuration that ended since a time, and those still active.
type TicketsSince struct {
	Tickets []matchmaking.Ticket // by their start
	Until   domain.Time          // Tickets has all that had begun by then; before now if there were more than the caller wanted
	Whole   bool                 // Until is now
}

// archiveReadMost bounds the bytes of the archive that one TicketsSince reads, because the archive mixes records of all kinds in the order
// of their ends.
const archiveReadMost = 64 << 20

// TicketsSince returns about `most` tickets, those that ended first, from memory and from this node's archive.
func (e *Engine) TicketsSince(ctx context.Context, configuration string, since domain.Time, most int) (x TicketsSince, err error) {
	if !e.covers.complete() {
		return x, domain.Refuse(domain.Overloaded, "this node is still copying the records of what has ended; use another node, or try again later")
	}
	x.Until, x.Whole = domain.TimeOf(e.Now()), true
	byNo := map[uint64]matchmaking.Ticket{}
	add := func(t *matchmaking.Ticket) {
		if t.Configuration == configuration && (t.Status.Active() || t.End >= since) {
			byNo[t.No] = *t
		}
	}
	// Memory first: a record is in the archive before it leaves memory.
	for at, begun := matchmaking.TicketRef(0), false; at != 0 || !begun; begun = true {
		if err := e.Read(ctx, func(v *cell.View) error { at = v.TicketsInMemory(at, scanStep, add); return nil }); err != nil {
			return x, err
		}
	}
	if err := archivedTickets(ctx, e.config.Archive, since, add, func(read int, next domain.Time) bool {
		if len(byNo) < most && read < archiveReadMost {
			return true
		}
		x.Until, x.Whole = min(x.Until, next), false
		return false
	}); err != nil {
		return x, err
	}
	for _, t := range byNo {
		if t.Start <= x.Until {
			x.Tickets = append(x.Tickets, t)
		}
	}
	slices.SortFunc(x.Tickets, func(a, b matchmaking.Ticket) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.No, b.No))
	})
	if len(x.Tickets) > most { // memory alone may have more
		x.Until, x.Whole = x.Tickets[most].Start, false
		x.Tickets = x.Tickets[:most]
	}
	return x, nil
}

// archivedTickets adds the archived tickets that ended since a time. It continues while more, given that all those that ended before `next`
// were read, wants others.
func archivedTickets(ctx context.Context, store archive.Archive, since domain.Time, add func(*matchmaking.Ticket), more func(read int, next domain.Time) bool) error {
	read := 0
	for behind := (archive.Place{Ended: int64(since)}); ; {
		page, err := store.Page(ctx, behind, pageBytes)
		if err != nil {
			return err
		}
		for i := range page.Records {
			r := &page.Records[i]
			read += len(r.Data)
			if r.Kind != archive.Ticket {
				continue
			}
			t, err := matchmaking.DecodeTicket(r.Data)
			if err != nil {
				return err
			}
			add(&t)
		}
		if behind = page.Next; !page.More || !more(read, domain.Time(behind.Ended-archive.Grain)) {
			return nil
		}
	}
}
